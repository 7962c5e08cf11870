package scale

import "math"

// List prices in US dollars as remembered on 2026-11-21, without discounts, commitments and free amounts. They differ by
// region and change: check them with the provider's calculator before anybody is told a sum.
const (
	priceCPU        = 0.000024   // vCPU and second of an instance that answers
	priceMemory     = 0.0000025  // GiB and second
	priceIdle       = 0.0000025  // vCPU and second of an instance that waits
	priceRequest    = 0.40 / 1e6 // Cloud Run
	priceGateway    = 3.00 / 1e6 // call of API Gateway
	priceRedis      = 0.064      // GB and hour, standard tier, up to 4 GB
	priceRedisLarge = 0.046      // 11 GB and more
	priceSQLCPU     = 0.0413 * 2 // vCPU and hour, with a standby
	priceSQLMemory  = 0.007 * 2  // GB and hour
	priceSQLDisk    = 0.17 * 2   // GB and month
	priceBackup     = 0.08       // GB and month
	priceMessages   = 40.0       // TiB through Pub/Sub, once for each who reads
	priceRule       = 0.025      // forwarding rule and hour
	priceBalanced   = 0.010      // GB through the load balancer
	priceEdge       = 0.11       // GB from the edge to guests in Asia
	priceLookup     = 0.0075 / 1e4
	priceArmor      = 0.75 / 1e6
	pricePolicy     = 5.0 + 2 // month: the policy, its rules
	priceBetween    = 0.08    // GB from the functions' region to the gateway's
	priceLog        = 0.50    // GiB
	priceJob        = 0.10    // month
	priceSecret     = 0.06    // version and month
)

const (
	gib     = 1 << 30
	tib     = 1 << 40
	memory  = 0.5 // GiB of an instance
	waiting = 3.0 // instances that wait, production.tfvars
	rounded = 0.1 // seconds: an instance is paid for in tenths
	readers = 1.0 // of each topic, paid by whoever's project they are in
	jobs    = 10
)

// bill is dollars per hour, by what they are for.
type bill struct {
	name    string
	perHour float64
}

// bills are those of a load with a Redis and a Postgres of these sizes. diskGB is what has come together by now.
func (n need) bills(redisGB, cpus, memoryGB, diskGB float64) []bill {
	var paid float64 // seconds of instances in an hour
	for function, rate := range n.rate {
		instances := math.Ceil(n.cpu[function] / busy)
		paid += 3600 * instances * (1 - math.Exp(-rate*rounded/instances))
	}
	paid += 3600 // the relay, which is always at work
	perGB := priceRedis
	if redisGB > 10 {
		perGB = priceRedisLarge
	}
	hour := 3600.0
	public := n.requests - n.rate["consume"]
	return []bill{
		{"Cloud Run", paid*(priceCPU+memory*priceMemory) + waiting*hour*(priceIdle+memory*priceMemory) + n.requests*hour*priceRequest},
		{"API Gateway", public * hour * priceGateway},
		{"Memorystore, with a replica", redisGB * perGB},
		{"Cloud SQL, with a standby", cpus*priceSQLCPU + memoryGB*priceSQLMemory + diskGB*(priceSQLDisk+priceBackup)/730},
		{"Pub/Sub", n.events * hour * message * (1 + readers) / tib * priceMessages},
		{"Load balancer, CDN, Cloud Armor", priceRule + pricePolicy/730 + n.edge*hour*(priceLookup+priceArmor) +
			n.edgeOut*hour/1e9*(priceBalanced+priceEdge)},
		{"Between the regions", n.bytesOut * hour / 1e9 * priceBetween},
		{"Logs", n.requests * hour * logRecord / gib * priceLog},
		{"Scheduler, secrets", (jobs*priceJob + 5*priceSecret) / 730},
	}
}
