// Worker that solves a proof of work: it counts up until the SHA-256 of challenge and number begins
// with the required number of zero bits (docs/challenge.md).
const utf8 = new TextEncoder()
const batchSize = 256

onmessage = async ({data: {challenge, difficulty}}) => {
  for (let n = 0; ; n += batchSize) {
    const tokens = Array.from({length: batchSize}, (_, i) => `${challenge}.${n + i}`)
    const sums = await Promise.all(tokens.map(token => crypto.subtle.digest("SHA-256", utf8.encode(token))))
    const found = sums.findIndex(sum => new DataView(sum).getUint32(0) >>> (32 - difficulty) === 0)
    if (found >= 0) {
      postMessage(tokens[found])
      return
    }
  }
}
