import { setTimeout as delay } from 'node:timers/promises'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { ENGINES } from '../../../test/stores/engines.ts'
import { SECRETS } from '../../../test/stores/rows.ts'
import { NodeMessages } from '../node-messages.ts'
import { StoreUnavailable } from '../store-unavailable.ts'
import { Announcements } from './announcements.ts'

const HERE = ENGINES.filter(({ name }) => name === 'PostgreSQL')

function opened(url: string): { announcements: Announcements; heard: string[]; connections: () => number } {
  const announcements = new Announcements(url, new NodeMessages(SECRETS))
  onTestFinished(() => announcements.close())
  const heard: string[] = []
  let connections = 0
  announcements.listen({ received: (text) => void heard.push(text), connected: () => (connections += 1) })
  return { announcements, heard, connections: () => connections }
}

describe.each(HERE)('announcements over $name', (engine) => {
  test('an announcement over PostgreSQL is received by every node, including the sender', async () => {
    const { place } = await engine.database()
    const [a, b] = [opened(place), opened(place)]
    await Promise.all([a.announcements.firstAttempt, b.announcements.firstAttempt])
    await a.announcements.announce('recall u:1')
    await vi.waitFor(() => expect([a.heard, b.heard]).toEqual([['recall u:1'], ['recall u:1']]), 60_000)
  })

  test('after a lost connection a node receives announcements over a new one, and learns that some may be missing', async () => {
    const { place, sql } = await engine.database()
    const { announcements, heard, connections } = opened(place)
    await vi.waitFor(() => expect(connections()).toBe(1), 60_000)
    await sql(
      "select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and application_name = 'sluice announcements'",
    )
    await vi.waitFor(() => expect(connections()).toBe(2), 60_000)
    await announcements.announce('after')
    await vi.waitFor(() => expect(heard).toEqual(['after']), 60_000)
  })

  test('an announcement to other nodes of more than 7,999 bytes is refused', async () => {
    const { announcements } = opened((await engine.database()).place)
    await announcements.firstAttempt
    await expect(announcements.announce('x'.repeat(8_000))).rejects.toThrow(/7999 bytes/)
  })
})

test('an announcement over a missing database is refused at once, and closing does not wait for the database', async () => {
  const { announcements, connections } = opened('postgres://nobody@127.0.0.1:1/none')
  await announcements.firstAttempt
  expect(connections()).toBe(0)
  await expect(announcements.announce('x')).rejects.toBeInstanceOf(StoreUnavailable)
  await Promise.race([
    announcements.close(),
    delay(60_000, undefined, { ref: false }).then(() => Promise.reject(new Error('still open'))),
  ])
})
