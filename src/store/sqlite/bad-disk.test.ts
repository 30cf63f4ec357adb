import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { CAN_MOUNT, mountSmallDisk } from '../../../test/stores/small-disk.ts'
import { holdOf, openedStore, SECRETS, settledCall, storeWithAccount } from '../../../test/stores/rows.ts'
import { lockDataFolder, secretOfDataFolder } from '../data-folder.ts'
import { StoreUnavailable } from '../store-unavailable.ts'
import { openSqliteStore } from './open.ts'

const DISKS = CAN_MOUNT ? [{ kind: 'a disk' }] : []

async function refusalOf(work: Promise<unknown>): Promise<StoreUnavailable> {
  const error: unknown = await work.then(
    () => undefined,
    (reason: unknown) => reason,
  )
  expect(error).toBeInstanceOf(StoreUnavailable)
  return error as StoreUnavailable
}

function fill(file: string): void {
  for (let bytes = 65_536; bytes >= 512; ) {
    try {
      writeFileSync(file, Buffer.alloc(bytes), { flag: 'a' })
    } catch {
      bytes /= 2
    }
  }
}

describe.each(DISKS)('$kind that is full', () => {
  test('a full disk refuses calls with StoreUnavailable until there is space; nothing is lost or charged twice', async () => {
    const disk = mountSmallDisk(4_000_000)
    const { store, who, tokenId } = await storeWithAccount(join(disk.path, 'sluice.db'), 'own')
    const filler = join(disk.path, 'filler')
    fill(filler)
    let taken = 0
    let refused = 0
    for (let round = 0; refused < 3; round += 1) {
      const batch = Array.from({ length: 100 }, (_, index) =>
        store.write('settle', settledCall(who, `${round}-${index}`, { quota: 1 })),
      )
      for (const result of await Promise.allSettled(batch)) if (result.status === 'fulfilled') taken += 1
      const first = await batch[0]?.catch((error: unknown) => error)
      if (first === undefined) continue
      refused += 1
      expect(first).toBeInstanceOf(StoreUnavailable)
      expect(first).toMatchObject({
        lasting: false,
        message: expect.stringMatching(/no room.*make room/) as unknown,
      })
    }
    rmSync(filler)
    await Promise.all(
      Array.from({ length: 100 }, (_, index) =>
        store.write('settle', settledCall(who, `later-${index}`, { quota: 1 })),
      ),
    )
    expect((await store.write('loadAccount', { tokenId }))?.token.used_quota).toBe(taken + 100)
    expect(await store.read('findUnbalancedAccounts')).toMatchObject({ tokens: [], users: [], days: [] })
  })

  test('a start of the gateway on a full disk fails with advice, and succeeds once there is space', async () => {
    const disk = mountSmallDisk(600_000)
    const path = join(disk.path, 'sluice.db')
    const filler = join(disk.path, 'filler')
    fill(filler)
    const error = await refusalOf(openSqliteStore({ path, secrets: SECRETS }))
    expect(error.message).toMatch(/^the database \/.*sluice\.db has no room left.*make room/)
    expect(() => secretOfDataFolder(disk.path)).toThrow(/the data folder \/.* has no room left.*make room/)
    rmSync(filler)
    expect(secretOfDataFolder(disk.path)).toMatch(/^[0-9a-f]{64}$/)
    const store = await openedStore(path, 'own')
    expect(await store.read('countUsers')).toBe(0)
  })

  test('no hold is lost if the disk is full when holds are to be recovered after a crash', async () => {
    const disk = mountSmallDisk(3_000_000)
    const path = join(disk.path, 'sluice.db')
    const { store, who } = await storeWithAccount(path, 'own')
    await Promise.all(
      Array.from({ length: 2000 }, (_, index) =>
        store.write('hold', holdOf(who, `id-${index}`, { owner: 'gone' })),
      ),
    )
    const filler = join(disk.path, 'filler')
    fill(filler)
    const error = await refusalOf(store.write('recover', { owner: 'now', nowMs: 1 }))
    expect(error.message).toMatch(/no room/)
    rmSync(filler)
    expect((await store.write('recover', { owner: 'now', nowMs: 1 })).count).toBe(2000)
    expect(await store.read('findUnbalancedAccounts')).toMatchObject({
      tokens: [],
      days: [],
      openHolds: { count: 0 },
    })
  })
})

describe.each(DISKS)('$kind that is read-only', () => {
  test('a start of the gateway on a read-only disk fails with advice', async () => {
    const disk = mountSmallDisk(1_000_000)
    const path = join(disk.path, 'sluice.db')
    await (await openSqliteStore({ path, secrets: SECRETS })).close()
    disk.makeReadOnly()
    expect((await refusalOf(openSqliteStore({ path, secrets: SECRETS }))).message).toMatch(
      /sluice\.db is on a disk that is read-only.*DATA_DIR/,
    )
    const told = /the data folder \/.*read and write it.*choose another DATA_DIR/
    expect(() => lockDataFolder(disk.path, 'gateway')).toThrow(told)
    expect(() => lockDataFolder(join(disk.path, 'new'), 'gateway')).toThrow(told)
    expect(() => secretOfDataFolder(disk.path)).toThrow(told)
  })
})
