// A worker that counts up until the SHA-256 of challenge and number begins with as many zero bits as are asked for (docs/challenge.md).
const utf8 = new TextEncoder()
const atOnce = 256

onmessage = async ({data: {challenge, difficulty}}) => {
  for (let n = 0; ; n += atOnce) {
    const tokens = Array.from({length: atOnce}, (_, i) => `${challenge}.${n + i}`)
    const sums = await Promise.all(tokens.map(token => crypto.subtle.digest("SHA-256", utf8.encode(token))))
    const found = sums.findIndex(sum => new DataView(sum).getUint32(0) >>> (32 - difficulty) === 0)
    if (found >= 0) {
      postMessage(tokens[found])
      return
    }
  }
}
