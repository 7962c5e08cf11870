# Every entry point registered in code, by its deployed name. function_<folder>.tf deploys the entry
# points of one folder. A test compares this table with the code, the API document and the table of
# the local server.
#
# kind          the caller: public (the gateway), internal (another service), event and job
#               (Pub/Sub), operator (a person)
# timeout       seconds; longer than the deadline in code: 2.5 s for a guest request, 25 s for an
#               event, 80 s for the relay, 590 s for a sweep
# connections   size of an instance's Postgres connection pool
locals {
  functions = {
    search              = { folder = "search", entry = "Search", kind = "public", timeout = 10, connections = 4 }
    search-map          = { folder = "search", entry = "SearchMap", kind = "public", timeout = 10, connections = 4 }
    facets              = { folder = "search", entry = "Facets", kind = "public", timeout = 10, connections = 4 }
    detail              = { folder = "detail", entry = "Detail", kind = "public", timeout = 10, connections = 4 }
    availability        = { folder = "detail", entry = "Availability", kind = "public", timeout = 10, connections = 4 }
    handoff             = { folder = "handoff", entry = "Handoff", kind = "public", timeout = 10, connections = 4 }
    wishlist-list       = { folder = "wishlist", entry = "WishlistList", kind = "public", timeout = 10, connections = 4 }
    wishlist-add        = { folder = "wishlist", entry = "WishlistAdd", kind = "public", timeout = 10, connections = 4 }
    wishlist-remove     = { folder = "wishlist", entry = "WishlistRemove", kind = "public", timeout = 10, connections = 4 }
    session             = { folder = "session", entry = "Session", kind = "public", timeout = 10, connections = 4 }
    session-locale      = { folder = "session", entry = "SessionLocale", kind = "public", timeout = 10, connections = 4 }
    session-currency    = { folder = "session", entry = "SessionCurrency", kind = "public", timeout = 10, connections = 4 }
    session-consent     = { folder = "session", entry = "SessionConsent", kind = "public", timeout = 10, connections = 4 }
    session-clear       = { folder = "session", entry = "SessionClear", kind = "public", timeout = 10, connections = 4 }
    session-export      = { folder = "session", entry = "SessionExport", kind = "public", timeout = 10, connections = 4 }
    telemetry-click     = { folder = "telemetry", entry = "TelemetryClick", kind = "public", timeout = 10, connections = 4 }
    telemetry-page-view = { folder = "telemetry", entry = "TelemetryPageView", kind = "public", timeout = 10, connections = 4 }
    telemetry-funnel    = { folder = "telemetry", entry = "TelemetryFunnel", kind = "public", timeout = 10, connections = 4 }
    consume             = { folder = "consume", entry = "Consume", kind = "internal", timeout = 10, connections = 4 }
    theme-published     = { folder = "invalidate", entry = "ThemePublished", kind = "event", timeout = 30, connections = 4 }
    listing-indexed     = { folder = "invalidate", entry = "ListingIndexed", kind = "event", timeout = 30, connections = 4 }
    tenant-suspended    = { folder = "invalidate", entry = "TenantSuspended", kind = "event", timeout = 30, connections = 4 }
    tenant-reinstated   = { folder = "invalidate", entry = "TenantReinstated", kind = "event", timeout = 30, connections = 4 }
    relay               = { folder = "relay", entry = "Relay", kind = "job", timeout = 90, connections = var.relay.connections }
    sweep-outbox        = { folder = "sweep", entry = "SweepOutbox", kind = "job", timeout = 600, connections = 1 }
    sweep-inbox         = { folder = "sweep", entry = "SweepInbox", kind = "job", timeout = 600, connections = 1 }
    sweep-parked        = { folder = "sweep", entry = "SweepParked", kind = "job", timeout = 600, connections = 1 }
    sweep-handoffs      = { folder = "sweep", entry = "SweepHandoffs", kind = "job", timeout = 600, connections = 1 }
    sweep-wishlist      = { folder = "sweep", entry = "SweepWishlist", kind = "job", timeout = 600, connections = 1 }
    sweep-bot-scores    = { folder = "sweep", entry = "SweepBotScores", kind = "job", timeout = 600, connections = 1 }
    sweep-idempotency   = { folder = "sweep", entry = "SweepIdempotency", kind = "job", timeout = 600, connections = 1 }
    sweep-sessions      = { folder = "sweep", entry = "SweepSessions", kind = "job", timeout = 600, connections = 1 }
    sweep-choices       = { folder = "sweep", entry = "SweepChoices", kind = "job", timeout = 600, connections = 1 }
    migrate             = { folder = "migrate", entry = "Migrate", kind = "operator", timeout = 3600, connections = 2 }
  }

  # Default sizes by kind; var.sizes overrides them. Event functions have a low concurrency, so that
  # a burst of events does not take the Postgres connections of guest requests.
  sizes = {
    public   = { memory = "512Mi", concurrency = 40, min_instances = 0, max_instances = 3 }
    internal = { memory = "512Mi", concurrency = 40, min_instances = 0, max_instances = 2 }
    event    = { memory = "512Mi", concurrency = 8, min_instances = 0, max_instances = 2 }
    job      = { memory = "512Mi", concurrency = 1, min_instances = 0, max_instances = 1 }
    operator = { memory = "512Mi", concurrency = 1, min_instances = 0, max_instances = 1 }
  }

  size = { for name, f in local.functions : name => {
    memory        = coalesce(try(var.sizes[name].memory, null), local.sizes[f.kind].memory)
    concurrency   = coalesce(try(var.sizes[name].concurrency, null), local.sizes[f.kind].concurrency)
    min_instances = coalesce(try(var.sizes[name].min_instances, null), local.sizes[f.kind].min_instances)
    max_instances = coalesce(try(var.sizes[name].max_instances, null), local.sizes[f.kind].max_instances)
  } }

  # Postgres connections in use when every function runs its maximum number of instances.
  connections = sum([for name, f in local.functions : f.connections * local.size[name].max_instances])

  folders = toset([for f in local.functions : f.folder])

  # Outputs of modules/function by entry point.
  deployed = merge(
    module.search, module.detail, module.handoff, module.wishlist, module.session, module.telemetry,
    module.consume, module.invalidate, module.relay, module.sweep, module.migrate,
  )
  accounts = { for name, f in local.deployed : name => f.account }
}

# Source archives written by `./dev pack all --out DIR`: one per folder, named by a content hash.
resource "google_storage_bucket" "source" {
  name                        = "${var.project}-${local.name}-source"
  location                    = var.region
  uniform_bucket_level_access = true
  public_access_prevention    = "enforced"
  force_destroy               = !var.deletion_protection # contains replaced archives, which can be rebuilt from their commits

  versioning {
    enabled = true # a replaced archive stays for 90 days
  }

  lifecycle_rule {
    condition {
      days_since_noncurrent_time = 90
    }
    action {
      type = "Delete"
    }
  }

  depends_on = [google_project_service.this]
}

resource "google_storage_bucket_object" "source" {
  for_each = local.folders

  bucket = google_storage_bucket.source.name
  name   = "${each.key}-${substr(filesha256("${var.packs_dir}/${each.key}.zip"), 0, 16)}.zip"
  source = "${var.packs_dir}/${each.key}.zip"

  # A build starts as soon as the object exists and needs the builder's roles.
  depends_on = [google_project_iam_member.builder]
}

# The service account of Cloud Build. No function runs as this account.
resource "google_service_account" "builder" {
  account_id   = "bffc-builder"
  display_name = "Builds the functions of bff-consumer"
}

# The builder reads the archives and the platform's copies of them, but not the bucket of
# Terraform's state, which contains secrets.
resource "google_project_iam_member" "builder" {
  for_each = {
    "roles/logging.logWriter"       = []
    "roles/artifactregistry.writer" = []
    "roles/storage.objectViewer"    = [for b in ["gcf-v2-", google_storage_bucket.source.name] : "resource.name.startsWith(\"projects/_/buckets/${b}\")"]
  }

  project = var.project
  role    = each.key
  member  = google_service_account.builder.member

  dynamic "condition" {
    for_each = length(each.value) > 0 ? [join(" || ", each.value)] : []

    content {
      title      = "archives"
      expression = condition.value
    }
  }
}

locals {
  # Common arguments of every call of modules/function.
  common = {
    project = var.project
    region  = var.region
    runtime = var.runtime
    builder = google_service_account.builder.name
    network = { network = google_compute_network.this.id, subnetwork = google_compute_subnetwork.functions.id }
    archives = { for folder in local.folders : folder => {
      bucket = google_storage_bucket.source.name, object = google_storage_bucket_object.source[folder].name
    } }
  }
}
