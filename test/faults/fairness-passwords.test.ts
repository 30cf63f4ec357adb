import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { manage } from '../equipment/account.ts'
import { ROOT, user } from '../equipment/configuration.ts'
import { logIn } from '../equipment/console.ts'
import { type RunningGateway, startGateway } from '../equipment/gateway.ts'
import { byTier } from '../tier.ts'

const ROOT_ACCOUNT = { id: 1, accessToken: ROOT.access_token }
const PASSWORD = 'correct horse'
const ATTACKER = '192.0.2.1'
const OWNER = '203.0.113.7'
/** Concurrent guesses: more than may wait. */
const GUESSES = 120
/** Pause after a guess that was refused without a look. */
const REPEAT_MS = 20
/** Sign-ins of an owner, of whose waits the middle one counts. */
const SIGN_INS = byTier(5, 15)
/** Owners that sign in at once, each at an address of its own. */
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

/** Keeps guesses under way until it is stopped; counts those whose password was checked. */
function guessContinuously(from: string): { readonly looked: () => number; stop(): Promise<void> } {
  let looked = 0
  const stopped = new AbortController()
  const guesser = async (): Promise<void> => {
    while (!stopped.signal.aborted) {
      const { status } = await signIn('ann', 'a guess', from)
      if (status === 401) looked += 1
      // A refused guess is repeated soon, and not at once: this machine is not what is attacked.
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
  while (!isTrue()) await new Promise((resolve) => setImmediate(resolve))
}

describe('during a brute-force attack on passwords', () => {
  test('sign-ins from another address wait for no more guesses than run at one time', async () => {
    const guesses = guessContinuously(ATTACKER)
    const waits: number[] = []
    try {
      await until(() => guesses.looked() >= 5)
      for (let n = 0; n < SIGN_INS; n += 1) {
        const before = guesses.looked()
        expect((await signIn('ben', PASSWORD, OWNER)).status).toBe(200)
        waits.push(guesses.looked() - before)
      }
    } finally {
      await guesses.stop()
    }
    // The guesses that are being checked when it arrives and when it runs, and those whose responses were on
    // their way, which on a busy machine are read late. In a queue by time of arrival nearly all come first.
    const median = waits.toSorted((a, b) => a - b)[SIGN_INS >> 1]
    expect(median).toBeLessThanOrEqual(GUESSES / 4)
  })

  test('the attacker alone is refused for too many requests', async () => {
    const guesses = guessContinuously(ATTACKER)
    try {
      await until(() => guesses.looked() >= 5)
      const others = Array.from({ length: OTHERS }, (_, n) => signIn('ben', PASSWORD, `198.51.100.${n}`))
      expect((await Promise.all(others)).map(({ status }) => status)).toEqual(Array(OTHERS).fill(200))
    } finally {
      await guesses.stop()
    }
  })

  test('a password change of a signed-in user has its turn as well', async () => {
    const guesses = guessContinuously(ATTACKER)
    try {
      await until(() => guesses.looked() >= 5)
      const change = { id: 3, password: PASSWORD }
      const changed = await manage(gateway.url, ROOT_ACCOUNT, 'PUT /api/user/', change)
      expect(changed.status).toBe(200)
    } finally {
      await guesses.stop()
    }
  })
})
