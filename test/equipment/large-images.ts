import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { request } from 'node:http'
import { channel, ROOT, token, user } from './configuration.ts'
import { databaseOf } from './database.ts'
import { startFixture } from './fixture.ts'
import { answered } from './media-fixture.ts'

const USAGE = '{"input_tokens":10,"output_tokens":1000,"total_tokens":1010}'

/**
 * Makes this number of calls at once, whose responses are images of this number of bytes, and reads them
 * without keeping them. Fails where an image is not what the upstream sent. Resolves to the growth of the
 * gateway's peak memory in bytes, and to the set of charges.
 */
export async function imagesAtOnce(
  calls: number,
  bytes: number,
): Promise<{ growth: number; charges: ReadonlySet<number> }> {
  const fixture = await startFixture((upstream) => ({
    models: { pictures: { price: { input: 2, output: 8 } } },
    channels: [channel('pictures', upstream.baseUrl('pictures'))],
    users: [ROOT, user(2, 'ann', [token('ann')])],
  }))
  try {
    const body = Buffer.from(`{"data":[{"b64_json":"${'QUJD'.repeat(bytes / 4)}"}],"usage":${USAGE}}`)
    const expected = createHash('sha256').update(body).digest('hex')
    fixture.upstream.script('pictures', answered('application/json', body))
    const { url, pid, dataDir } = fixture.gateway
    // The first call loads modules, whose memory must not count.
    await digestOfCall(url)
    const before = peakMemory(pid)
    const digests = await Promise.all(Array.from({ length: calls }, () => digestOfCall(url)))
    if (digests.some((digest) => digest !== expected)) throw new Error('a response was changed')
    const rows = databaseOf(dataDir).usage()
    if (rows.length !== calls + 1) throw new Error(`${rows.length} calls were charged`)
    return { growth: peakMemory(pid) - before, charges: new Set(rows.map(({ quota }) => quota)) }
  } finally {
    await fixture.close()
  }
}

function digestOfCall(url: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const sent = request(`${url}/v1/images/generations`, {
      method: 'POST',
      headers: { authorization: 'Bearer sk-ann', 'content-type': 'application/json' },
    })
    sent.on('error', reject)
    sent.on('response', (response) => {
      const hash = createHash('sha256')
      response.on('data', (chunk: Buffer) => hash.update(chunk))
      response.on('end', () => resolve(hash.digest('hex')))
      response.on('error', reject)
    })
    sent.end('{"model":"pictures","prompt":"x"}')
  })
}

function peakMemory(pid: number): number {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8')
  return Number(/^VmHWM:\s+(\d+) kB$/m.exec(status)?.[1]) * 1024
}
