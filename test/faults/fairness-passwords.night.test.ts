import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { manage } from '../fixtures/account.ts'
import { ROOT, user } from '../fixtures/configuration.ts'
import { logIn } from '../fixtures/console.ts'
import { type RunningGateway, startGateway } from '../fixtures/gateway.ts'
import { byTier } from '../runner/tier.ts'

const ROOT_ACCOUNT = { id: 1, accessToken: ROOT.access_token }
const PASSWORD = 'correct horse'
const ATTACKER = '192.0.2.1'
const OWNER = '203.0.113.7'
/** The number of concurrent guesses, which is more than may wait. */
const GUESSES = 120
/** Milliseconds before a guess is repeated that was refused without a check. */
const REPEAT_MS = 100
/** The number of sign-ins of an owner, whose median wait is measured. */
const SIGN_INS = byTier(3, 15)
/** The number of owners that sign in at once, each at another address. */
const OTHERS = byTier(5, 10)

let gateway: RunningGateway
beforeAll(async () => {
  gateway = await startGateway({
    config: {
      options: { trusted_proxies: ['127.0.0.1'] },
      rate_limits: { global: { requests: 0 }, critical: { requests: 0 } },
      users: [ROOT, user(2, 'ann', []), user(3, 'ben', [])],
    },
  })
  for (const id of [2, 3]) {
    await manage(gateway.url, ROOT_ACCOUNT, 'PUT /api/user/', { id, password: PASSWORD })
  }
})
afterAll(() => gateway?.discard())

const signIn = (username: string, password: string, from: string) =>
  logIn(gateway.url, { username, password }, { 'x-forwarded-for': from })

/** Keeps guesses in flight until it is stopped; counts those whose password was checked. */
function guessContinuously(from: string): { readonly looked: () => number; stop(): Promise<void> } {
  let looked = 0
  const stopped = new AbortController()
  const guesser = async (): Promise<void> => {
    while (!stopped.signal.aborted) {
      const { status } = await signIn('ann', 'a guess', from)
      if (status === 401) looked += 1
      // A refused guess is repeated after a short pause, because this test attacks the gateway and not the
      // machine.
      else await sleep(REPEAT_MS)
    }
  }
  const all = Promise.all(Array.from({ length: GUESSES }, guesser))
  return {
    looked: () => looked,
    async stop() {
      stopped.abort()
      await all
    },
  }
}

async function until(isTrue: () => boolean): Promise<void> {
  while (!isTrue()) await sleep(5)
}

describe('during a brute-force attack on passwords', () => {
  let guesses: ReturnType<typeof guessContinuously>
  beforeAll(async () => {
    guesses = guessContinuously(ATTACKER)
    await until(() => guesses.looked() >= 5)
  })
  afterAll(() => guesses?.stop())

  test('during password guessing a sign-in from another address waits only for the checks in progress', async () => {
    const waits: number[] = []
    for (let n = 0; n < SIGN_INS; n += 1) {
      const before = guesses.looked()
      expect((await signIn('ben', PASSWORD, OWNER)).status).toBe(200)
      waits.push(guesses.looked() - before)
    }
    // The guesses that are checked when the sign-in arrives and when it is checked, and those whose responses
    // had not been read yet, which takes time on a busy machine. In a queue ordered by arrival, nearly all
    // guesses would come first.
    const median = waits.toSorted((a, b) => a - b)[SIGN_INS >> 1]
    expect(median).toBeLessThanOrEqual(GUESSES / 4)
  })

  test('while one address guesses passwords, only that address is refused for too many requests', async () => {
    const others = Array.from({ length: OTHERS }, (_, n) => signIn('ben', PASSWORD, `198.51.100.${n}`))
    expect((await Promise.all(others)).map(({ status }) => status)).toEqual(Array(OTHERS).fill(200))
  })

  test("an administrator can set a user's password while another client guesses passwords", async () => {
    const change = { id: 3, password: PASSWORD }
    const changed = await manage(gateway.url, ROOT_ACCOUNT, 'PUT /api/user/', change)
    expect(changed.status).toBe(200)
  })
})
