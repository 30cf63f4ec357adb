import { describe, expect, test } from 'vitest'
import { readConfig } from '../../src/config/config.ts'
import { readEnvironment } from '../../src/config/environment.ts'
import { LiveConfig } from '../../src/config/live-config.ts'
import type { GatewayError } from '../../src/errors.ts'
import { changeGroup } from '../../src/management/groups/change-group.ts'
import { groupObject } from '../../src/management/groups/list-groups.ts'
import type { AdministrationServices } from '../../src/management/services.ts'
import { listOptions } from '../../src/management/settings/list-options.ts'
import { setOption } from '../../src/management/settings/set-option.ts'
import type { Store } from '../../src/store/store.ts'
import { openedStore } from '../stores/rows.ts'

const BUDGET = { budget: 5_000_000, budget_period: 'month' } as const

/** A node that gets no announcements of changes. */
async function nodeOn(store: Store) {
  const liveConfig = await LiveConfig.open(store, readConfig(readEnvironment({}, {}, '/')), () => {})
  // Only these services take part.
  const services = {
    store,
    liveConfig,
    settings: () => liveConfig.settings,
    nowMs: Date.now,
  } as unknown as AdministrationServices
  return {
    reread: () => liveConfig.reread(),
    set: (key: string, value: unknown, version?: string) =>
      setOption(services, { key, value: JSON.stringify(value), version }),
    option: async (key: string) => (await listOptions(services)).find((one) => one.key === key),
    group: () => groupObject(services, 'vip'),
    /** The group as it is shown if some work is done while its budget is read. */
    groupDuring(work: () => Promise<unknown>) {
      const read: Store['read'] = async (...given) => {
        await work()
        return store.read(...given)
      }
      return groupObject({ ...services, store: { ...store, read } }, 'vip')
    },
    change: (fields: object) => changeGroup(services, { group: 'vip', ...fields }),
  }
}

/** Two nodes on one database. `before` does some work once, when the first node has read and is about to write. */
async function twoNodes() {
  const store = await openedStore()
  let meanwhile: (() => Promise<unknown>) | undefined
  const read = store.read.bind(store)
  const write: Store['write'] = async (...given) => {
    const once = meanwhile
    meanwhile = undefined
    await once?.()
    return store.write(...given)
  }
  const [here, there] = [await nodeOn({ read, write } as unknown as Store), await nodeOn(store)]
  await there.set('GroupRatio', { default: 1, vip: 1 })
  await here.reread()
  const stored = async () => (await store.read('storedConfiguration')).entries
  return {
    here,
    there,
    before: (work: () => Promise<unknown>) => void (meanwhile = work),
    stored,
    vip: async () => (await stored()).find(({ name }) => name === 'vip')?.value,
  }
}

// `docs/administration.md: Versions`
describe('changes on two nodes without a version', () => {
  test('of different settings of a group all stay, also if both nodes have read before they write', async () => {
    const { here, there, before, vip } = await twoNodes()
    before(() => there.change({ open: true }))
    await here.change({ ratio: '0.5' })
    expect(await vip()).toEqual({ ratio: '0.5', open: true })
  })

  test('of different options about the same model or group all stay', async () => {
    const { here, there, before, stored } = await twoNodes()
    await here.set('ModelRatio', { m: 1 })
    before(() => there.set('ModelRatio', { m: 2 }))
    await here.set('CompletionRatio', { m: 3 })
    before(() => there.change({ ratio: '0.5' }))
    await here.set('UserUsableGroups', { default: '', vip: '' })
    expect(await stored()).toMatchObject([
      { section: 'groups', name: 'vip', value: { ratio: '0.5', open: true } },
      { section: 'ratios', name: 'm', value: { model: '2', completion: '3' } },
    ])
  })

  test('keep what the other node has stored, also before a node knows of it', async () => {
    const { here, there, vip } = await twoNodes()
    await here.set('GroupBudget', { vip: BUDGET })
    await there.set('GroupRatio', { default: 1, vip: 2 })
    expect(await vip()).toMatchObject({ ratio: '2', budget: BUDGET.budget })
    await here.change({ ratio: '3' })
    await there.set('UserUsableGroups', { default: 'default', vip: 'vip' })
    expect(await vip()).toMatchObject({ ratio: '3', open: true, budget: BUDGET.budget })
    await there.set('GroupBudget', {})
    await here.change({ ratio: '4' })
    expect(await vip()).toEqual({ ratio: '4', open: true })
  })

  test('set a value that the node takes to be in force', async () => {
    const { here, there, vip } = await twoNodes()
    await here.set('GroupRatio', { default: 1, vip: 2 })
    await there.set('GroupRatio', { default: 1, vip: 1 })
    expect(await vip()).toMatchObject({ ratio: '1' })
  })
})

test('the budget of a shown group is that of its version, also if the group is changed meanwhile', async () => {
  const { here } = await twoNodes()
  await here.set('GroupBudget', { vip: BUDGET })
  const before = await here.group()
  let changes = 0
  const shown = await here.groupDuring(() => here.change({ ratio: '2', ...BUDGET, budget: ++changes }))
  expect(changes).toBeGreaterThan(0)
  expect(shown).toEqual(before)
})

test('a change of a group or an option that another node has overtaken is refused with the object as it is now', async () => {
  const { here, there, before } = await twoNodes()
  const refusal = (change: Promise<unknown>): Promise<GatewayError | undefined> =>
    change.then(
      () => undefined,
      (error: GatewayError) => error,
    )
  const { version } = await here.group()
  before(() => there.change({ ratio: '3', version }))
  const ofGroup = await refusal(here.change({ ratio: '2', version }))
  expect(ofGroup).toMatchObject({ code: 'changed_meanwhile', present: { ratio: '3' } })
  expect(ofGroup?.present).toEqual(await there.group())
  const option = await here.option('GroupRatio')
  before(() => there.set('GroupRatio', { default: 1, vip: 6 }, option?.version))
  const ofOption = await refusal(here.set('GroupRatio', { default: 1, vip: 5 }, option?.version))
  expect(ofOption?.code).toBe('changed_meanwhile')
  expect(ofOption?.present).toEqual(await there.option('GroupRatio'))
})
