import { CERTAINLY_GONE_MS, call, type LiveResponse, open } from '../../../test/fixtures/client.ts'
import { logIn } from '../../../test/fixtures/console.ts'
import { setTimeout as sleep } from 'node:timers/promises'
import { WATCHERS } from '../../candidates/sluice.ts'

/** Interval at which a console whose stream has gaps requests its list and its sums again. */
const ASK_AGAIN_MS = 30_000
const PERIOD_S = 7 * 86_400
const PAGE = 50

/** Clients of the gateway's management API, until they are disposed of. */
export interface Clients extends AsyncDisposable {
  /** Number of calls that they were sent; known once they are disposed of. */
  readonly sent: () => number
}

/** Readers of the live stream, in the order in which they were opened. */
interface Readers extends Clients {
  /** Number of gap events that a reader was sent. */
  readonly gaps: (reader: number) => number
}

/** Cookies of `count` sessions, each of another administrator. */
export async function sessions(url: string, count: number): Promise<readonly string[]> {
  if (count > WATCHERS.length) throw new Error(`the maximum is ${WATCHERS.length} consoles`)
  const cookies: string[] = []
  for (const { accessToken } of WATCHERS.slice(0, count))
    cookies.push((await logIn(url, { access_token: accessToken })).cookie)
  return cookies
}

/** Opens live streams of all calls, `each` of them per session. */
export async function openReaders(url: string, cookies: readonly string[], each = 1): Promise<Readers> {
  const streams: LiveResponse[] = []
  let sent = 0
  for (const cookie of cookies)
    for (let n = 0; n < each; n += 1) {
      const stream = await open(url, undefined, {
        method: 'GET',
        path: `/api/log/stream?${query({ start_timestamp: String(since()) })}`,
        headers: { cookie },
      })
      if (stream.status !== 200) throw new Error(`${stream.status}: ${(await stream.end()).text}`)
      streams.push(stream)
    }
  return {
    sent: () => sent,
    gaps: (reader) => timesIn(streams[reader]?.text() ?? '', 'event: gap'),
    async [Symbol.asyncDispose]() {
      await sleep(CERTAINLY_GONE_MS)
      for (const stream of streams) stream.abort()
      for (const stream of streams) sent += timesIn((await stream.end()).text, 'event: call')
    },
  }
}

/**
 * Opens the log with *Live* enabled, once per session: the first requests of the page, the stream, and then,
 * if the stream had a gap, the list and the sums in turn, like the page does.
 */
export async function openConsoles(url: string, cookies: readonly string[]): Promise<Clients> {
  const ask = async (cookie: string, path: string): Promise<void> => {
    const { status, text } = await call(url, undefined, { method: 'GET', path, headers: { cookie } })
    if (status !== 200) throw new Error(`${path}: ${status} ${text.slice(0, 200)}`)
  }
  const list = async (cookie: string): Promise<void> => {
    const start = String(since())
    await ask(cookie, `/api/log/?${query({ start_timestamp: start, p: '1', page_size: String(PAGE) })}`)
    await ask(cookie, `/api/usage?${query({ from: start, by: 'none', step: 'month' })}`)
  }
  for (const cookie of cookies) {
    await ask(cookie, '/api/console')
    await list(cookie)
  }
  const readers = await openReaders(url, cookies)
  let turn = 0
  const known = cookies.map(() => 0)
  const failures: unknown[] = []
  const asking = setInterval(() => {
    turn = (turn + 1) % cookies.length
    const gaps = readers.gaps(turn)
    if (gaps === known[turn]) return
    known[turn] = gaps
    list(cookies[turn] ?? '').catch((error: unknown) => failures.push(error))
  }, ASK_AGAIN_MS / cookies.length)
  return {
    sent: readers.sent,
    async [Symbol.asyncDispose]() {
      clearInterval(asking)
      await readers[Symbol.asyncDispose]()
      if (failures.length > 0) throw failures[0]
    },
  }
}

/** Opens `count` consoles of the gateway at a port; none if there is no gateway. */
export async function consolesOf(port: number | undefined, count: number): Promise<Clients | undefined> {
  if (port === undefined || count === 0) return undefined
  const url = `http://127.0.0.1:${port}`
  return openConsoles(url, await sessions(url, count))
}

function timesIn(text: string, part: string): number {
  return text.split(part).length - 1
}

function query(fields: Readonly<Record<string, string>>): string {
  return new URLSearchParams(fields).toString()
}

// The period of the page begins at the start of a day.
function since(): number {
  const now = Math.floor(Date.now() / 1000) - PERIOD_S
  return now - (now % 86_400)
}
