import { afterAll, beforeAll, expect, test } from 'vitest'
import { ROOT, user } from '../fixtures/configuration.ts'
import { logIn } from '../fixtures/console.ts'
import { databaseOf } from '../fixtures/database.ts'
import { type RunningGateway, startGateway } from '../fixtures/gateway.ts'

/** A hash of unknown bytes, at the cost that other gateways use. */
const BCRYPT = '$2a$10$Kdyyi/7lrFk7OWL8uWVq9uHU6zrMXQOwphz7P365KzmqvqvihadLa'
/** Minimum and maximum number of rounds; more are needed while other load disturbs them. */
const ROUNDS = { min: 6, max: 60 }

let gateway: RunningGateway
beforeAll(async () => {
  gateway = await startGateway({
    config: {
      rate_limits: { global: { requests: 0 }, critical: { requests: 0 } },
      users: [ROOT, user(2, 'ann', [])],
    },
  })
  await gateway.stop()
  databaseOf(gateway.dataDir).write('update users set password_hash = ? where id = 2', BCRYPT)
  await gateway.restart()
})
afterAll(() => gateway?.discard())

test('a wrong password takes as long for a name that does not exist as for an imported user', async () => {
  const fastest = { ann: Number.POSITIVE_INFINITY, nobody: Number.POSITIVE_INFINITY }
  const tried = async (username: keyof typeof fastest): Promise<void> => {
    const began = performance.now()
    expect(await logIn(gateway.url, { username, password: 'wrong horse' })).toMatchObject({ status: 401 })
    fastest[username] = Math.min(fastest[username], performance.now() - began)
  }
  const isAlike = (): boolean => {
    const ratio = fastest.ann / fastest.nobody
    return ratio > 0.6 && ratio < 1.6
  }
  // Compares the fastest of alternating attempts, because other load only adds time, until enough rounds were
  // undisturbed.
  for (let round = 0; round < ROUNDS.max && !(round >= ROUNDS.min && isAlike()); round += 1) {
    await tried('ann')
    await tried('nobody')
  }
  expect(fastest).toSatisfy(isAlike)
})
