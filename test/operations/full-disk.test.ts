import { closeSync, openSync, rmSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { manage } from '../fixtures/account.ts'
import { startAlertReceiver } from '../fixtures/alert-receiver.ts'
import { BatchClient, chatLine, sharedFolder } from '../fixtures/batches.ts'
import { usageText } from '../fixtures/behaviour.ts'
import { type Body, call, type FullResponse, open } from '../fixtures/client.ts'
import { channel, type Configuration, priced, ROOT, token, user } from '../fixtures/configuration.ts'
import { ask, askStream } from '../fixtures/fixture.ts'
import { startMailServer } from '../fixtures/mail-server.ts'
import { patchedProgram } from '../fixtures/patched-copy.ts'
import { patientWithPostgres } from '../fixtures/patient-program.ts'
import { type ScriptedUpstream, startUpstream } from '../fixtures/scripted-upstream.ts'
import { SHARED } from '../nodes/fixture.ts'
import { CAN_MOUNT, mountSmallDisk } from '../stores/small-disk.ts'
import { metricsOf } from './metrics-text.ts'
import { eventually, type Program, readyProgram } from './program.ts'

/** Ten prompt and five output tokens. */
const COST = 30
const ERROR_LEVEL = 50
const USER = { role: 'user', content: 'hi' }
/** Streams from the model `s` in each dialect, and the content of the error event at their end. */
const STREAMS = [
  {
    dialect: 'chat',
    path: '/v1/chat/completions',
    body: askStream('s'),
    ending: ['"error":{', '"type":"gateway_error"', '"code":"storage_unavailable"'],
  },
  {
    dialect: 'messages',
    path: '/v1/messages',
    body: { model: 's', stream: true, max_tokens: 100, messages: [USER] },
    ending: ['event: error', '"type":"error"', '"type":"gateway_error"'],
  },
  {
    dialect: 'responses',
    path: '/v1/responses',
    body: { model: 's', stream: true, input: 'hi' },
    ending: ['"code":"storage_unavailable"'],
  },
  {
    dialect: 'gemini',
    path: '/v1beta/models/s:streamGenerateContent?alt=sse',
    body: { contents: [{ role: 'user', parts: [{ text: 'hi' }] }] },
    ending: ['"error":{', '"code":503', '"status":"UNAVAILABLE"'],
  },
] as const
/** Calls of the model `m`, and where each dialect's errors have their type and code. */
const REFUSALS = [
  ['/v1/chat/completions', ask('m'), { error: { type: 'gateway_error', code: 'storage_unavailable' } }],
  [
    '/v1/messages',
    { model: 'm', max_tokens: 100, messages: [USER] },
    { type: 'error', error: { type: 'gateway_error', code: 'storage_unavailable' } },
  ],
  [
    '/v1/responses',
    { model: 'm', input: 'hi' },
    { error: { type: 'gateway_error', code: 'storage_unavailable' } },
  ],
  [
    '/v1beta/models/m:generateContent',
    { contents: [{ role: 'user', parts: [{ text: 'hi' }] }] },
    { error: { code: 503, status: 'UNAVAILABLE' } },
  ],
] as const

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

const SETTINGS: readonly [string, (place: () => Promise<string>) => Promise<Record<string, string>>][] = [
  ['a gateway of one process', () => Promise.resolve({})],
  ...SHARED.map((): (typeof SETTINGS)[number] => [
    'a node on PostgreSQL',
    async (place) => ({ DATABASE_URL: await place() }),
  ]),
]

describe.runIf(CAN_MOUNT)('a full disk', () => {
  test.each(SETTINGS)(
    'on a full disk with %s, calls are refused or end in an error, alerts are sent, and charges are written once there is space',
    async (_, environment) => {
      const told = await startAlertReceiver()
      onTestFinished(() => told.stop())
      const env = await environment(async () => (await SHARED[0]?.database(onTestFinished))?.place ?? '')
      const { program, disk } = await onSmallDisk(env, {
        options: { keep_responses: '1h' },
        alerts: [told.declared('storage.failed', 'storage.back')],
      })
      const chat = (model: string): Promise<FullResponse> => send(program, '/v1/chat/completions', ask(model))
      upstream.script('m', { kind: 'whole', usage: usageText(10, 5) })
      expect((await chat('m')).status).toBe(200)

      const ending = Promise.withResolvers<void>()
      const held = { events: 5, usage: usageText(10, 5), usageIn: 'always' } as const
      upstream.script('s', { kind: 'stream', endsAfter: ending.promise, ...held })
      upstream.script('w', { kind: 'whole', after: ending.promise, usage: usageText(10, 5) })
      // The gateway keeps the second one, and has to charge it first.
      const whole = [chat('w'), send(program, '/v1/responses', { model: 'w', input: 'hi' })]
      const live = await Promise.all(
        STREAMS.map(({ path, body }) => open(program.url, body, { key: 'ann', path })),
      )
      await Promise.all(live.map((stream) => stream.until('word4')))
      // At this time the holds of the whole calls are on the disk, too: they are written at the latest before the charge
      // of a call that follows, however late the gateway's timers are.
      const underWay = live.length + whole.length
      await eventually(async () => (await metric(program, 'sluice_open_holds')) === underWay, 'held')
      await new Promise((resolve) => setTimeout(resolve, 100))
      expect((await chat('m')).status).toBe(200)

      const filler = join(disk, 'filler')
      fill(filler)
      ending.resolve()
      for (const [index, stream] of live.entries()) {
        const { text } = await stream.end()
        const last = text.trimEnd().split('\n\n').at(-1)
        for (const part of STREAMS[index]?.ending ?? []) expect(last, STREAMS[index]?.dialect).toContain(part)
        expect(text).not.toMatch(/\[DONE\]|message_stop|response\.completed|"finishReason"/)
      }
      for (const refused of await Promise.all(whole)) expectRefused(refused)
      const asked = upstream.received('m').length
      for (const [path, body, error] of REFUSALS) {
        const refused = await send(program, path, body)
        expectRefused(refused)
        expect(refused.json()).toMatchObject(error)
      }
      for (const refused of await Promise.all(Array.from({ length: 20 }, () => chat('m'))))
        expectRefused(refused)
      // No upstream works for calls that cannot be charged.
      expect(upstream.received('m')).toHaveLength(asked)
      const ready = await readyz(program)
      expect([ready.status, ready.text]).toEqual([503, 'not ready: storage\n'])
      expect(await metric(program, 'sluice_storage_ok')).toBe(0)
      expect(await metric(program, 'sluice_ledger_lag')).toBeGreaterThanOrEqual(underWay)
      await told.atLeast(1)
      expect(told.received[0]).toMatchObject({
        type: 'storage.failed',
        isSigned: true,
        data: { reason: expect.stringContaining('no room') as unknown },
      })

      rmSync(filler)
      await eventually(async () => (await readyz(program)).status === 200, 'ready again')
      await eventually(async () => (await chat('m')).status === 200, 'served')
      await told.atLeast(2)
      expect(told.received.map(({ type }) => type)).toEqual(['storage.failed', 'storage.back'])
      await eventually(async () => (await metric(program, 'sluice_storage_ok')) === 1, 'writable')
      // The calls that the upstream billed: those in flight, and those that were answered.
      const answered = upstream.received('m').length + underWay
      await eventually(async () => (await spent(program))?.used_quota === answered * COST, 'all are charged')
      expect(await metric(program, 'sluice_open_holds')).toBe(0)
      expect(await metric(program, 'sluice_ledger_lag')).toBe(0)
      const errors = program.log().filter(({ level }) => Number(level) >= ERROR_LEVEL)
      expect(errors).toHaveLength(1)
      expect(JSON.stringify(errors)).toContain('no room')
    },
  )

  test.each(SHARED)(
    'a batch of a node on $name ends once its lines are charged, although a full disk refused that until the node was killed',
    async (engine) => {
      const files = sharedFolder()
      onTestFinished(() => files.remove())
      const database = await engine.database(onTestFinished)
      const { program, disk, restarted } = await onSmallDisk(
        { DATABASE_URL: database.place },
        { options: { local_batches: true, files: { store: files.path } } },
      )
      const ending = Promise.withResolvers<void>()
      upstream.script('w', { kind: 'whole', after: ending.promise, usage: usageText(10, 5) })
      const count = 4
      const lines = Array.from({ length: count }, (_, at) => chatLine(`l${at}`, 'w'))
      const { id } = await new BatchClient(program.url, 'ann').make(lines)
      await upstream.receivedAtLeast('w', count)
      const filler = join(disk, 'filler')
      fill(filler)
      ending.resolve()
      await eventually(async () => (await metric(program, 'sluice_ledger_lag')) === count, 'refused')
      // The node, which renews its lease before it ends a batch, has had the time to do so.
      const leases = new Set<unknown>()
      await eventually(async () => {
        const [lease] = await database.sql(
          `select until_ms as until from idempotent_calls where lookup = 'batch ${id}'`,
        )
        return leases.add(lease?.['until']).size > 2 || lease === undefined
      }, 'looked at')
      program.kill('SIGKILL')
      await program.exit
      rmSync(filler)
      const again = await restarted()
      const ended = await new BatchClient(again.url, 'ann').ended(id)
      expect(ended).toMatchObject({ status: 'completed', request_counts: { completed: count } })
      await eventually(async () => (await spent(again))?.used_quota === count * COST, 'all are charged')
      const rows = await database.sql('select quota from usage_log')
      expect(rows.map(({ quota }) => quota)).toEqual(lines.map(() => COST))
    },
  )

  test('a call that ended while the disk was full can be repeated under its idempotency key once there is space, however long that took', async () => {
    // As if the disk had been full until the last retry.
    const copy = await patchedProgram([
      {
        file: 'src/store/retried-writes.ts',
        text: 'const PAUSES_MS = [1_000, 5_000, 25_000, 60_000]',
        by: 'const PAUSES_MS: number[] = []',
      },
    ])
    onTestFinished(() => copy.discard())
    const { program, disk } = await onSmallDisk({}, { options: { retries: 0 } }, copy.root)
    const ending = Promise.withResolvers<void>()
    upstream.script(
      's',
      { kind: 'stream', events: 5, endsAfter: ending.promise },
      { kind: 'stream', events: 5 },
    )
    upstream.script('w', { kind: 'status', status: 500, after: ending.promise }, { kind: 'whole' })
    const withKey = (key: string) => ({ key: 'ann', headers: { 'idempotency-key': key } })
    const attempt = (): Promise<FullResponse> => call(program.url, ask('w'), withKey('whole'))
    const failing = attempt()
    const live = await open(program.url, askStream('s'), withKey('stream'))
    await live.until('word4')
    await upstream.receivedAtLeast('w', 1)
    const filler = join(disk, 'filler')
    fill(filler)
    ending.resolve()
    expect((await live.end()).text).toContain('storage_unavailable')
    expect((await failing).status).toBe(500)
    expectRefused(await attempt())

    rmSync(filler)
    await eventually(async () => (await attempt()).status === 200, 'made again')
    const again = await call(program.url, askStream('s'), withKey('stream'))
    expect(again.text).toContain('[DONE]')
    expect(again.headers['idempotency-replayed']).toBeUndefined()
  })

  test('/readyz reports a full disk even without any call', async () => {
    const told = await startAlertReceiver()
    onTestFinished(() => told.stop())
    const { program, disk } = await onSmallDisk(
      {},
      { alerts: [told.declared('storage.failed', 'storage.back')] },
    )
    const filler = join(disk, 'filler')
    fill(filler)
    expect((await readyz(program)).text).toBe('not ready: storage\n')
    expect(await metric(program, 'sluice_storage_ok')).toBe(0)
    await told.atLeast(1)
    rmSync(filler)
    await told.atLeast(2)
    expect(told.received.map(({ type }) => type)).toEqual(['storage.failed', 'storage.back'])
    expect((await readyz(program)).status).toBe(200)
  })

  test('a full disk and its end are reported by mail, even if the mail server refuses one of the addresses', async () => {
    const mails = await startMailServer(false, new Set(), new Set(['gone@example.com']))
    onTestFinished(() => mails.stop())
    const { program, disk } = await onSmallDisk(
      {},
      {
        alerts: [
          { url: 'mailto:ops@example.com,gone@example.com', events: ['storage.failed', 'storage.back'] },
        ],
        options: { smtp: { host: '127.0.0.1', port: mails.port, security: 'none', from: 's@example.com' } },
      },
    )
    const filler = join(disk, 'filler')
    fill(filler)
    expect((await readyz(program)).text).toBe('not ready: storage\n')
    await expect.poll(() => mails.received.length).toBe(1)
    rmSync(filler)
    await expect.poll(() => mails.received.length).toBe(2)
    expect(mails.received.map(({ to }) => to)).toEqual([['ops@example.com'], ['ops@example.com']])
  })
})

/** Starts a gateway whose data folder is on a small file system. */
async function onSmallDisk(
  env: Readonly<Record<string, string>>,
  fields: Configuration,
  cwd?: string,
): Promise<{ readonly program: Program; readonly disk: string; readonly restarted: () => Promise<Program> }> {
  const { path: disk } = mountSmallDisk(24_000_000)
  const names = ['m', 's', 'w']
  const config: Configuration = {
    models: priced(names),
    channels: names.map((name) => channel(name, upstream.baseUrl(name))),
    users: [ROOT, user(2, 'ann', [token('ann')])],
    ...fields,
  }
  const folder = { path: disk, configFile: join(disk, 'gateway.yaml'), discard: () => {} }
  // A timeout of the database would refuse a call for another reason than the disk.
  const patient = env['DATABASE_URL'] === undefined ? cwd : await patientWithPostgres()
  const started = patient === undefined ? {} : { cwd: patient }
  const restarted = (): Promise<Program> => readyProgram({ folder, config, env, ...started })
  return { program: await restarted(), disk, restarted }
}

function send({ url }: Program, path: string, body: Body): Promise<FullResponse> {
  return call(url, body, { key: 'ann', path })
}

function expectRefused({ status, headers }: FullResponse): void {
  expect(status).toBe(503)
  expect(Number(headers['retry-after'])).toBeGreaterThan(0)
}

function readyz({ url }: Program): Promise<FullResponse> {
  return call(url, undefined, { method: 'GET', path: '/readyz' })
}

async function metric({ url }: Program, name: string): Promise<number> {
  return (await metricsOf(url)).sum(name)
}

/** The account of the caller; undefined if the gateway refused to read it. */
async function spent({ url }: Program): Promise<{ used_quota: number } | undefined> {
  const { data } = await manage<{ used_quota: number } | undefined>(
    url,
    { id: 1, accessToken: ROOT.access_token },
    'GET /api/user/2',
  )
  return data
}
