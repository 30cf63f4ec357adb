import { setTimeout as sleep } from 'node:timers/promises'
import { getHeapSpaceStatistics } from 'node:v8'
import { expect, onTestFinished, test } from 'vitest'
import { collectAll, collectYoung } from '../../../test/fixtures/collect-young.ts'
import { accountOf, factsOf, settlementOf } from '../../../test/ledger/calls.ts'
import { storeWithAccount } from '../../../test/stores/rows.ts'
import type { Store } from '../../store/store.ts'
import type { Account } from './balance.ts'
import { Ledger } from './ledger.ts'
import { OpenHold } from './open-hold.ts'
import { UnwrittenHolds } from './unwritten-holds.ts'

interface Bench {
  readonly ledger: Ledger
  readonly store: Store
  readonly tokenId: number
  readonly admit: (id: string, amount?: number) => OpenHold
  /** Names and ids of the calls' writes so far, in order. */
  readonly writes: string[]
}

/** A ledger on a real store, whose writes are recorded. */
async function bench(): Promise<Bench> {
  const { store, tokenId } = await storeWithAccount()
  const writes: string[] = []
  const noted: Store = {
    ...store,
    read: store.read.bind(store),
    write: (name, ...input) => {
      const { id } = (input[0] ?? {}) as { readonly id?: string }
      if (id !== undefined) writes.push(`${name} ${id}`)
      return store.write(name, ...input)
    },
  }
  const ledger = new Ledger(noted, 'run')
  const account: Account = await accountOf(ledger, tokenId)
  return {
    ledger,
    store,
    tokenId,
    admit: (id, amount = 100) => ledger.admit(account, amount, factsOf(id)),
    writes,
  }
}

/** Waits until a hold is older than `ms`, regardless of delays by the machine. */
async function untilOlder(hold: OpenHold, ms: number): Promise<void> {
  while (performance.now() - hold.admittedAt <= ms) await sleep(1)
}

test('the hold of a call that ends at once is never written to the database, but its charge is', async () => {
  const { admit, writes, store, tokenId } = await bench()
  await admit('a').settle(settlementOf(7))
  expect(writes).toEqual(['settle a'])
  expect((await store.write('loadAccount', { tokenId }))?.token.used_quota).toBe(7)
})

test('a hold is written to the database soon after its call began, even if nothing else is written', async () => {
  const { admit, store } = await bench()
  const hold = admit('a')
  await expect.poll(() => hold.isDurable).toBe(true)
  expect(performance.now() - hold.admittedAt).toBeGreaterThan(35)
  expect((await store.read('findUnbalancedAccounts')).openHolds).toEqual({ count: 1, amount: 100 })
})

test('holds that are due at the same time are written to the database together, without those of ended calls', async () => {
  const { admit, writes } = await bench()
  const [first, second, third] = ['a', 'b', 'c'].map((id) => admit(id))
  await second?.settle(settlementOf(1))
  await expect.poll(() => first?.isDurable && third?.isDurable).toBe(true)
  expect(writes).toEqual(['settle b', 'hold a', 'hold c'])
})

test("another call's settlement writes the holds that are due along with it, but no hold that is not due yet", async () => {
  const { admit, writes } = await bench()
  const other = admit('other')
  const [old] = [admit('old')]
  // All in one turn, so that no timer fires in between.
  for (const endAt = performance.now() + 31; performance.now() < endAt; );
  const young = admit('young')
  const settled = other.settle(settlementOf(1))
  expect(writes).toEqual(['hold old', 'settle other'])
  expect([old?.isUnwritten, young.isUnwritten]).toEqual([false, true])
  await settled
  expect(old?.isDurable).toBe(true)
})

test('a hold is written to the database at once when the first byte of its response waits for it', async () => {
  const { admit, writes } = await bench()
  const hold = admit('a')
  expect(hold.isUnwritten).toBe(true)
  expect(await hold.whenDurable()).toBe(true)
  expect([hold.isDurable, writes]).toEqual([true, ['hold a']])
  await hold.whenDurable()
  await hold.settle(settlementOf(1))
  expect(writes).toEqual(['hold a', 'settle a'])
})

test('the growth of a hold that is not yet written is written with it, and later growth separately', async () => {
  const { admit, store, writes } = await bench()
  const hold = admit('a')
  expect(hold.grow(50)).toBe(true)
  expect(writes).toEqual([])
  await hold.whenDurable()
  expect(hold.grow(25)).toBe(true)
  expect(writes).toEqual(['hold a', 'growHold a'])
  await expect
    .poll(async () => (await store.read('findUnbalancedAccounts')).openHolds)
    .toEqual({ count: 1, amount: 175 })
})

test('after a crash, a hold that was not written to the database is not charged, and a written one is charged its prompt', async () => {
  const { admit, store, tokenId } = await bench()
  const shown = admit('shown')
  await shown.whenDurable()
  admit('silent')
  expect(await new Ledger(store, 'next run').recover()).toEqual({ count: 1, quota: 5 })
  expect((await store.write('loadAccount', { tokenId }))?.token.used_quota).toBe(5)
})

test('a hold is written to the database before its progress is recorded or its call continues in the background', async () => {
  const { admit, store, writes } = await bench()
  admit('marked').markProgress(20)
  expect(await admit('parked').park()).toBe(true)
  expect(writes).toEqual(['hold marked', 'markProgress marked', 'hold parked', 'parkHold parked'])
  expect(await new Ledger(store, 'next run').recover()).toEqual({ count: 1, quota: 25 })
})

test('waiting for a hold to be written, when its call is already settled, waits for the settlement instead', async () => {
  const { admit, writes } = await bench()
  const hold = admit('a')
  const settled = hold.settle(settlementOf(1))
  expect(await hold.whenDurable()).toBe(true)
  await settled
  await untilOlder(hold, 60)
  expect(writes).toEqual(['settle a'])
})

test('a hold that becomes due during a write to the database is written next, without a warning of Node.js', async () => {
  const { ledger, admit, store, writes } = await bench()
  const warnings: string[] = []
  const note = ({ name }: Error): void => void warnings.push(name)
  process.on('warning', note)
  onTestFinished(() => void process.off('warning', note))
  const first = admit('a')
  await untilOlder(first, 15)
  const second = admit('b')
  // Keeps the thread busy in the turn in which the first one is written.
  const written = first.whenDurable.bind(first)
  first.whenDurable = () => {
    const untilMs = second.admittedAt + 100
    while (performance.now() < untilMs);
    return written()
  }
  await expect.poll(() => writes).toEqual(['hold a', 'hold b'])
  await sleep(1)
  expect(warnings).toEqual([])
  await Promise.all([first.settle(settlementOf(1)), second.settle(settlementOf(1))])
  expect(ledger.isWritable).toBe(true)
  await store.close()
})

test('the holds of ended calls are freed without a full garbage collection', async () => {
  const { ledger, tokenId } = await bench()
  const account = await accountOf(ledger, tokenId)
  const waiting = new UnwrittenHolds()
  const hold = (): OpenHold => OpenHold.unrecorded(account, factsOf('a'))
  const end = (): void => {
    const holds = Array.from({ length: 40 }, hold)
    for (const one of holds) waiting.add(one)
    for (const one of holds) waiting.delete(one)
  }
  const calls = (rounds: number): void => {
    for (let round = 0; round < rounds; round += 1) {
      end()
      collectYoung()
    }
  }
  calls(20)
  collectAll()
  const before = oldBytes()
  calls(100)
  expect(oldBytes() - before).toBeLessThan(200_000)
})

/** Bytes in use in the old generation. */
function oldBytes(): number {
  return getHeapSpaceStatistics().find(({ space_name }) => space_name === 'old_space')?.space_used_size ?? 0
}
