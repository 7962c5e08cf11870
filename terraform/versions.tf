terraform {
  required_version = ">= 1.11"

  required_providers {
    google = {
      source  = "hashicorp/google"
      version = "~> 7.39"
    }
    # API Gateway, and a network endpoint group in front of it, exist in the beta provider alone.
    google-beta = {
      source  = "hashicorp/google-beta"
      version = "~> 7.39"
    }
  }

  # Where the state is kept is said at init: -backend-config="bucket=…". It holds secrets: the password of Redis and the
  # edge's secret. Only those who deploy may read that bucket.
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
