import { once } from 'node:events'
import { createServer, type AddressInfo, type Server, type Socket } from 'node:net'
import { renameSync, writeFileSync } from 'node:fs'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { stringify } from 'yaml'
import { call, retryWhileShed } from '../fixtures/client.ts'
import {
  channel,
  type Configuration,
  priced,
  ROOT,
  token,
  user,
  withoutModelLists,
} from '../fixtures/configuration.ts'
import {
  completionText,
  contentFrame,
  DONE_FRAME,
  finishFrame,
  roleFrame,
  usageFrame,
  usageText,
} from '../fixtures/behaviour.ts'
import { ask } from '../fixtures/fixture.ts'
import { metricsOf } from '../operations/metrics-text.ts'
import { discard, eventually, type Program, runProgram } from '../operations/program.ts'
import { byTier } from '../runner/tier.ts'

/** A connection as the upstream sees it. */
interface Seen {
  readonly socket: Socket
  /** The channels and keys of its requests, in order. */
  readonly users: string[]
}

/** A way in which an upstream sends an unrequested response after the requested one. */
type SendUnrequested = (socket: Socket, answer: string, unasked: string) => void

const WAYS_TO_SEND = {
  'with the answer’s last bytes': (socket, answer, unasked) => socket.write(answer + unasked),
  'right behind the answer': (socket, answer, unasked) => {
    socket.write(answer)
    setImmediate(() => socket.write(unasked))
  },
  'one to five milliseconds later': (socket, answer, unasked) => {
    socket.write(answer)
    setTimeout(() => socket.destroyed || socket.write(unasked), 1 + Math.floor(Math.random() * 5))
  },
} satisfies Record<string, SendUnrequested>

const CALLS = byTier(100, 300)
const AT_ONCE = 8
/** The number of tests that have their own pair of channels: `honest1` and `hostile1`, and so on. */
const PAIRS = 2 * Object.keys(WAYS_TO_SEND).length + 1
const MODELS = Array.from({ length: PAIRS }, (_, n) => [`honest${n + 1}`, `hostile${n + 1}`]).flat()

let manner: SendUnrequested
let seen: Seen[]
let server: Server
let program: Program
let pairs = 0
let [honest, hostile] = ['', '']
beforeAll(async () => {
  server = createServer(serve).listen(0, '127.0.0.1')
  await once(server, 'listening')
  program = await runProgram({ config: configuration(MODELS) })
  await program.ready()
})
beforeEach(() => {
  seen = []
  pairs += 1
  ;[honest, hostile] = [`honest${pairs}`, `hostile${pairs}`]
})
afterEach(() => {
  for (const { socket } of seen) socket.destroy()
})
afterAll(async () => {
  if (program) await discard(program)
  server.close()
})

// A configuration whose channels all have one address and one origin.
function configuration(models: readonly string[]): Configuration {
  const { port } = server.address() as AddressInfo
  return {
    options: { retries: 0 },
    models: priced(MODELS),
    channels: models.map((name) =>
      channel(name, `http://127.0.0.1:${port}/v1`, { keys: [`${name}-one`, `${name}-two`] }),
    ),
    users: [ROOT, user(2, 'ann', [token('ann')]), user(3, 'bob', [token('bob')])],
  }
}

function answerText(content: string): string {
  const body = completionText(content, usageText(10, 5))
  const length = Buffer.byteLength(body)
  return `HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nkeep-alive: timeout=600\r\ncontent-length: ${length}\r\n\r\n${body}`
}

function streamText(content: string): string {
  const frames = [roleFrame(), contentFrame(content), finishFrame(), usageFrame(usageText(10, 5)), DONE_FRAME]
  const chunks = frames.map((frame) => `${Buffer.byteLength(frame).toString(16)}\r\n${frame}\r\n`)
  return `HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nkeep-alive: timeout=600\r\ntransfer-encoding: chunked\r\n\r\n${chunks.join('')}0\r\n\r\n`
}

/** Answers each request with its own mark; after calls of a hostile model one more response is sent. */
function serve(socket: Socket): void {
  const users: string[] = []
  seen.push({ socket, users })
  socket.setNoDelay(true)
  socket.on('error', () => {})
  let text = ''
  socket.on('data', (bytes: Buffer) => {
    text += bytes.toString('latin1')
    const mark = /mark-\w+/.exec(text)?.[0]
    if (!text.endsWith('}') || mark === undefined) return
    users.push(/bearer (\S+)/i.exec(text)?.[1] ?? '')
    const told = text.includes('"stream":true') ? streamText : answerText
    text = ''
    if (mark.startsWith('mark-hostile')) manner(socket, told(mark), told(`stolen from ${mark}`))
    else socket.write(told(mark))
  })
}

/** Makes calls, several at once, every third a stream. Returns how many got the response of another call. */
async function countMixedUp(model: string, key: string, calls = CALLS): Promise<number> {
  let next = 0
  let mixed = 0
  const client = async (): Promise<void> => {
    while (next < calls) {
      const mark = `mark-${model}${(next += 1)}x`
      const messages = [{ role: 'user', content: mark }]
      const body = ask(model, { messages, ...(next % 3 === 0 && { stream: true }) })
      const { status, text } = await retryWhileShed(() => call(program.url, body, { key }))
      expect(status, text).toBe(200)
      if (!text.includes(`"content":"${mark}"`) || text.includes('stolen')) mixed += 1
    }
  }
  await Promise.all(Array.from({ length: AT_ONCE }, client))
  return mixed
}

const unasked = async (name: string): Promise<number> =>
  (await metricsOf(program.url)).sum('sluice_upstream_unasked_total', { channel: name })

const warnings = (): Record<string, unknown>[] =>
  program
    .log()
    .filter(({ msg }) => String(msg).includes('unrequested bytes'))
    .filter(({ channel: named }) => named === honest || named === hostile)

describe.each(Object.keys(WAYS_TO_SEND) as (keyof typeof WAYS_TO_SEND)[])(
  'an unrequested response, %s',
  (name) => {
    beforeEach(() => {
      manner = WAYS_TO_SEND[name]
    })

    test('an unrequested response never reaches a call of another channel at the same address', async () => {
      const [, mixed] = await Promise.all([countMixedUp(hostile, 'ann'), countMixedUp(honest, 'bob')])
      expect(mixed).toBe(0)
      expect(await unasked(honest)).toBe(0)
      for (const { users } of seen) expect(new Set(users).size, users.join(' ')).toBeLessThan(2)
      // The other channel's connections are reused.
      const reused = seen.filter(({ users }) => users[0]?.startsWith(honest))
      expect(reused.length).toBeLessThan(CALLS / 2)
    })

    test('once an unrequested response of a channel was noticed, none reaches a call of that channel, which stays in service', async () => {
      await eventually(async () => {
        await countMixedUp(hostile, 'ann', AT_ONCE)
        return (await unasked(hostile)) > 0
      }, 'it is noticed')
      expect(await countMixedUp(hostile, 'bob')).toBe(0)
      expect(await countMixedUp(honest, 'bob')).toBe(0)
      // From then on, each of these connections carried one call only.
      for (const { users } of seen.slice(-CALLS))
        if (users[0]?.startsWith(hostile)) expect(users).toHaveLength(1)
      await expect.poll(warnings).toMatchObject([{ level: 40, channel: hostile }])
    })
  },
)

test('connections of a channel that was removed by a reload are closed', async () => {
  manner = (socket, answer) => socket.write(answer)
  expect(await countMixedUp(hostile, 'ann', AT_ONCE)).toBe(0)
  expect(await countMixedUp(honest, 'ann', AT_ONCE)).toBe(0)
  const open = (name: string): number =>
    seen.filter(({ socket, users }) => users[0]?.startsWith(name) && !socket.destroyed).length
  expect(open(hostile)).toBeGreaterThan(0)
  const kept = open(honest)
  expect(kept).toBeGreaterThan(0)
  // Renamed, because a reader of a part of the file would remove more channels.
  const { configFile } = program.folder
  writeFileSync(
    `${configFile}.new`,
    stringify(withoutModelLists(configuration(MODELS.filter((name) => name !== hostile)))),
  )
  renameSync(`${configFile}.new`, configFile)
  await eventually(() => open(hostile) === 0, 'the connections are closed')
  expect(open(honest)).toBe(kept)
})
