import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { type Profiler, Session } from 'node:inspector'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { stringify } from 'yaml'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { agentConversation } from '../../bench/load/agent-conversation.ts'
import { readConfig } from '../../src/config/config.ts'
import { readEnvironment } from '../../src/config/environment.ts'
import { type Gateway, startGateway } from '../../src/gateway/main.ts'
import { usageText } from '../fixtures/behaviour.ts'
import { call } from '../fixtures/client.ts'
import { AMPLE, channel, priced, ROOT, token, user } from '../fixtures/configuration.ts'
import { BASE_ENVIRONMENT } from '../fixtures/program.ts'
import { type ScriptedUpstream, startUpstream } from '../fixtures/scripted-upstream.ts'

/** The functions that go through a whole request: the end of the URL of their file, and their name. */
const WALKS = {
  scans: ['/json/json-scan.ts', 'scanObject'],
  outlines: ['/shape/outline.ts', 'Walk'],
  'checks of names': ['/json/known-names.ts', 'check'],
} as const

const MESSAGE = {
  id: 'msg_1',
  type: 'message',
  role: 'assistant',
  model: 'upstream-model',
  content: [{ type: 'text', text: 'yes' }],
  stop_reason: 'end_turn',
  usage: { input_tokens: 30_000, output_tokens: 5 },
}

const session = new Session()
const folder = mkdtempSync(join(tmpdir(), 'sluice-walks-'))
let upstream: ScriptedUpstream
let gateway: Gateway
beforeAll(async () => {
  upstream = await startUpstream()
  upstream.decide('m', () => ({ kind: 'whole', content: 'yes', usage: usageText(30_000, 5) }))
  upstream.decide('converted', () => ({ kind: 'whole', body: JSON.stringify(MESSAGE) }))
  const place = join(folder, 'config')
  mkdirSync(place)
  writeFileSync(
    join(place, 'gateway.yaml'),
    stringify({
      options: { cache: { ttl: '1h' }, keep_responses: '1h', keep_signatures: '1h' },
      models: priced(['plain', 'm', 'converted']),
      channels: [
        channel('m', upstream.baseUrl('m'), { models: ['plain', 'm'], keys: ['one', 'two'] }),
        channel('converted', upstream.baseUrl('converted'), { protocol: 'messages' }),
      ],
      guards: [
        {
          name: 'mail',
          do: 'redact',
          models: ['m'],
          where: ['input', 'tool_results'],
          match: { pii: ['email'] },
        },
      ],
      users: [
        ROOT,
        user(2, 'ann', [
          token('ann', { remain_quota: AMPLE }),
          token('all', { remain_quota: AMPLE, content_log: { what: 'redacted' } }),
        ]),
      ],
    }),
  )
  const environment = { ...BASE_ENVIRONMENT, DATA_DIR: join(folder, 'data'), PORT: '0', LOG_LEVEL: 'warn' }
  gateway = await startGateway(
    readConfig(readEnvironment(environment, { config: join(place, 'gateway.yaml') })),
  )
  session.connect()
  session.post('Profiler.enable')
  session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: false })
  walks()
})
afterAll(async () => {
  session.disconnect()
  await gateway?.close()
  await upstream?.stop()
  rmSync(folder, { recursive: true, force: true })
})

/** The number of walks since the last time; a walk after the end of a call is counted with the next one. */
function walks(): Readonly<Record<string, number>> {
  let scripts: Profiler.ScriptCoverage[] = []
  session.post('Profiler.takePreciseCoverage', (_, { result }) => (scripts = result))
  const countOf = ([file, name]: readonly [string, string]): number =>
    scripts
      .filter(({ url }) => url.endsWith(file))
      .flatMap(({ functions }) => functions)
      .filter(({ functionName }) => functionName === name)
      .reduce((sum, { ranges }) => sum + (ranges[0]?.count ?? 0), 0)
  return Object.fromEntries(Object.entries(WALKS).map(([walk, place]) => [walk, countOf(place)]))
}

async function walksOf(body: object, key: string): Promise<Readonly<Record<string, number>>> {
  const headers = { 'x-session-id': 'a', 'idempotency-key': String(Math.random()) }
  const answer = await call(gateway.url, body, { key, ...(key === 'all' && { headers }) })
  expect(answer.status, answer.text).toBe(200)
  return walks()
}

test('a plain chat request of 2 KB is scanned once, and its values are walked through once', async () => {
  const body = { model: 'plain', messages: [{ role: 'user', content: 'word '.repeat(400) }] }
  expect(await walksOf(body, 'ann')).toEqual({ scans: 1, outlines: 1, 'checks of names': 1 })
})

test("an agent's request of 100 KB with a guard, caches, a session, an idempotency key and the content log is scanned once, and its values are walked through once", async () => {
  const body = { model: 'm', ...agentConversation(100_000) }
  expect(await walksOf(body, 'all')).toEqual({ scans: 1, outlines: 1, 'checks of names': 1 })
})

test('a request that guards change is scanned and walked through twice, before and after the change', async () => {
  const { tools, messages } = agentConversation(100_000)
  const said = { role: 'user', content: 'Write to ann.lee@example.com.' }
  const body = { model: 'm', tools, messages: [...messages, said] }
  expect(await walksOf(body, 'all')).toEqual({ scans: 2, outlines: 2, 'checks of names': 2 })
})

test('a request of 100 KB that is converted is walked through once as it came, and once as it is sent', async () => {
  const body = { model: 'converted', ...agentConversation(100_000) }
  // The third scan is that of the answer.
  expect(await walksOf(body, 'ann')).toEqual({ scans: 3, outlines: 2, 'checks of names': 1 })
})
