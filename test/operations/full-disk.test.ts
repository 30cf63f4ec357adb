import { closeSync, openSync, rmSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { call, open } from '../equipment/client.ts'
import { plainConfiguration } from '../equipment/configuration.ts'
import { type ScriptedUpstream, startUpstream } from '../equipment/scripted-upstream.ts'
import { ask, askStream } from '../equipment/fixture.ts'
import { CAN_MOUNT, mountSmallDisk } from '../small-disk.ts'
import { eventually, readyProgram } from './program.ts'

let upstream: ScriptedUpstream
beforeAll(async () => {
  upstream = await startUpstream()
})
afterAll(() => upstream?.stop())

/** Writes until the disk is full. */
function fill(path: string): void {
  const file = openSync(path, 'w')
  const piece = Buffer.alloc(4096, 1)
  try {
    for (;;) writeSync(file, piece)
  } catch (error) {
    expect((error as NodeJS.ErrnoException).code).toBe('ENOSPC')
  } finally {
    closeSync(file)
  }
}

describe.runIf(CAN_MOUNT)('a full disk', () => {
  test('refuses new calls with 503, lets running streams end once there is room, and then serves as before', async () => {
    const disk = mountSmallDisk(24_000_000)
    const folder = { path: disk.path, configFile: join(disk.path, 'gateway.yaml'), discard: () => {} }
    const program = await readyProgram({
      folder,
      config: plainConfiguration(upstream.baseUrl('m')),
    })
    upstream.script('m', { kind: 'whole' })
    expect((await call(program.url, ask('m'), { key: 'ann' })).status).toBe(200)
    const refusing = Promise.withResolvers<void>()
    upstream.script('m', { kind: 'stream', events: 100, paceMs: 10, endsAfter: refusing.promise })
    const live = await open(program.url, askStream('m'), { key: 'ann' })
    await live.until(' word2')

    const filler = join(disk.path, 'filler')
    fill(filler)
    upstream.script('m', { kind: 'whole' })
    await eventually(
      async () => (await call(program.url, ask('m'), { key: 'ann' })).status === 503,
      'refused',
    )
    const refused = await call(program.url, ask('m'), { key: 'ann' })
    expect(refused.json().error).toMatchObject({ type: 'gateway_error', code: 'overloaded' })
    expect(Number(refused.headers['retry-after'])).toBeGreaterThan(0)
    // The upstream is asked again once there is room.
    const asked = upstream.received('m').length
    for (const { status } of await Promise.all(
      Array.from({ length: 20 }, () => call(program.url, ask('m'), { key: 'ann' })),
    ))
      expect(status).toBe(503)
    expect(upstream.received('m')).toHaveLength(asked)

    rmSync(filler)
    refusing.resolve()
    const { text } = await live.end()
    expect(text).toContain(' word99')
    expect(text).toContain('data: [DONE]')
    await eventually(async () => (await call(program.url, ask('m'), { key: 'ann' })).status === 200, 'served')
  })
})
