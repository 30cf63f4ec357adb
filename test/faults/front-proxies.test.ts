import process from 'node:process'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { plainConfiguration } from '../fixtures/configuration.ts'
import { FRONT_PROXIES, type PassedOn, startFrontProxy } from '../fixtures/front-proxy.ts'
import { rawConnection } from '../fixtures/raw-socket.ts'
import { type Fixture, startFixture } from '../fixtures/fixture.ts'
import { BODY, lengthOf, MISFRAMED, post } from './ambiguous-requests.ts'

/**
 * The bytes after a request on the same connection: a separate request, or one hidden in what is taken for
 * the first one's body.
 */
const NEXT = `GET /v1/models HTTP/1.1\r\nhost: x\r\nauthorization: Bearer sk-ann\r\n\r\n`
const PLAIN = post(`content-type: application/json\r\nconnection: close\r\n${lengthOf(BODY)}`, BODY)

const REFUSED = new Set([400, 417])

/** The requests that a gateway found and those that the proxy passed on, by their logs. */
interface Requests {
  readonly found: readonly string[]
  readonly passedOn: readonly PassedOn[]
  readonly answered: readonly PassedOn[]
  readonly takenUp: readonly PassedOn[]
}

let fixture: Fixture
beforeAll(async () => {
  fixture = await startFixture((upstream) => plainConfiguration(upstream.baseUrl('m')))
})
afterAll(() => fixture?.close())

/**
 * Milliseconds after which logs that are written four times a second are complete, unless the machine is
 * busy.
 */
const LOGGING_MS = 500
const PATIENCE_MS = 60_000

/** The ids of the requests that the gateway found on its connections, by its log. */
function foundByGateway(): string[] {
  return [...fixture.gateway.logs().matchAll(/"id":"([^"]+)","method":"[A-Z]+","path":"(?!\/healthz)/g)].map(
    ([, id]) => id ?? '',
  )
}

/**
 * Whether both logs have all requests that the proxy passed on, and no more than it may have passed on
 * partially.
 */
function isComplete({ found, passedOn, answered, takenUp }: Requests): boolean {
  const ids = takenUp.map(({ id = '' }) => id)
  const others = found.filter((id) => !ids.includes(id))
  return ids.every((id) => found.includes(id)) && others.length <= passedOn.length - answered.length
}

describe.each(Object.keys(FRONT_PROXIES) as (keyof typeof FRONT_PROXIES)[])('behind %s', (name) => {
  test('the gateway finds exactly the requests that a proxy passed on, however they are framed', async () => {
    const proxy = await startFrontProxy(name, fixture.gateway.port)
    if (!proxy) {
      const why = `left out: ${name} is not installed`
      if (process.env['CI'] === 'true') throw new Error(why)
      console.log(why)
      return
    }
    onTestFinished(proxy.stop)
    await sleep(LOGGING_MS)
    const [before, passedBefore] = [foundByGateway().length, proxy.passedOn().length]
    const send = (bytes: string | Buffer): Promise<string> => rawConnection(proxy.port, bytes).closed()
    await Promise.all(
      MISFRAMED.flatMap(([, bytes]) => [
        send(bytes),
        send(Buffer.concat([Buffer.from(bytes), Buffer.from(NEXT)])),
      ]),
    )
    // The next client on these connections gets the response to its own request, also after a proxy has given up a
    // gateway on a busy machine.
    for (let i = 0; i < 20; i++) {
      let answer: string
      do answer = await send(PLAIN)
      while (answer.startsWith('HTTP/1.1 504 '))
      expect(answer).toMatch(/^HTTP\/1\.1 200 [^\0]*chatcmpl/)
    }

    const read = (): Requests => {
      const found = foundByGateway().slice(before)
      const passedOn = proxy.passedOn().slice(passedBefore)
      const answered = passedOn.filter(({ id }) => id !== undefined)
      // Requests that are unreadable, have no host, or have an unknown expectation are refused without any
      // effect, and the connection is closed.
      const takenUp = answered.filter(({ status, id = '' }) => !REFUSED.has(status) || found.includes(id))
      return { found, passedOn, answered, takenUp }
    }
    const deadlineMs = performance.now() + PATIENCE_MS
    do await sleep(LOGGING_MS)
    while (!isComplete(read()) && performance.now() < deadlineMs)
    const { found, passedOn, answered, takenUp } = read()
    const givenUp = passedOn.length - answered.length
    console.log(
      `${name} passed on ${passedOn.length} of ${2 * MISFRAMED.length + 20} requests, ${givenUp} of them in part; the gateway took ${found.length} up and could not read ${answered.length - takenUp.length}`,
    )
    expect(found.length).toBeGreaterThanOrEqual(20)
    const ids = takenUp.map(({ id = '' }) => id)
    expect(found).toEqual(expect.arrayContaining(ids))
    expect(new Set(ids).size).toBe(ids.length)
    expect(found.filter((id) => !ids.includes(id)).length).toBeLessThanOrEqual(givenUp)
  })
})
