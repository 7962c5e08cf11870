terraform {
  required_version = ">= 1.11"

  required_providers {
    google = {
      source  = "hashicorp/google"
      version = "~> 7.39"
    }
    # API Gateway, and a network endpoint group for it, exist only in the beta provider.
    google-beta = {
      source  = "hashicorp/google-beta"
      version = "~> 7.39"
    }
  }

  # `terraform init -backend-config="bucket=…"` sets the bucket of the state. The state contains
  # secrets: the Redis password and the edge's secret. Only deployers may read the bucket.
  backend "gcs" {
    prefix = "bff-consumer"
  }
}

provider "google" {
  project = var.project
  region  = var.region
}

provider "google-beta" {
  project = var.project
  region  = var.region
}
