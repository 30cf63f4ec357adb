import { expect, test } from 'vitest'
import { readConfig } from '../../src/config/config.ts'
import { readEnvironment } from '../../src/config/environment.ts'
import { LiveConfig } from '../../src/config/live-config.ts'
import { changeGroup } from '../../src/management/groups/change-group.ts'
import { groupObject } from '../../src/management/groups/list-groups.ts'
import type { AdministrationServices } from '../../src/management/services.ts'
import { listOptions } from '../../src/management/settings/list-options.ts'
import { setOption } from '../../src/management/settings/set-option.ts'
import type { GatewayError } from '../../src/errors.ts'
import type { Store } from '../../src/store/store.ts'
import { openedStore } from '../stores/rows.ts'

const BUDGET = { budget: 5_000_000, budget_period: 'month' } as const

/** A node that is not told what others change. */
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
    liveConfig,
    set: (key: string, value: object, version?: string) =>
      setOption(services, { key, value: JSON.stringify(value), version }),
    option: async (key: string) => (await listOptions(services)).find((one) => one.key === key),
    group: () => groupObject(services, 'vip'),
    change: (fields: object) => changeGroup(services, { group: 'vip', ...fields }),
    async vip() {
      await liveConfig.reread()
      const { ratio, open, budget } = liveConfig.settings.groups.get('vip') ?? {}
      return { ratio: ratio?.digits, open, budget: budget?.amount }
    },
  }
}

async function twoNodes() {
  const store = await openedStore()
  const [here, there] = [await nodeOn(store), await nodeOn(store)]
  await here.set('GroupRatio', { default: 1, vip: 1 })
  await there.liveConfig.reread()
  return { here, there }
}

// `docs/administration.md: Versions`
test('a change of a group without a version keeps what another node has stored, also before the node knows of it', async () => {
  const { here, there } = await twoNodes()
  await here.set('GroupBudget', { vip: BUDGET })
  await there.set('GroupRatio', { default: 1, vip: 2 })
  expect(await here.vip()).toEqual({ ratio: 2n, open: false, budget: BUDGET.budget })
  await here.change({ ratio: '3' })
  await there.set('UserUsableGroups', { default: 'default', vip: 'vip' })
  expect(await here.vip()).toEqual({ ratio: 3n, open: true, budget: BUDGET.budget })
  await there.set('GroupBudget', {})
  await here.change({ ratio: '4' })
  expect(await there.vip()).toEqual({ ratio: 4n, open: true, budget: undefined })
})

test('an option without a version is set to a value that the node takes to be in force', async () => {
  const { here, there } = await twoNodes()
  await here.set('GroupRatio', { default: 1, vip: 2 })
  await there.set('GroupRatio', { default: 1, vip: 1 })
  expect(await here.vip()).toMatchObject({ ratio: 1n })
})

test('simultaneous changes of different fields of a group without a version all stay, over two nodes', async () => {
  const { here, there } = await twoNodes()
  for (const [ratio, budget] of [
    [2, 7],
    [3, 8],
    [4, 9],
  ] as const) {
    await Promise.all([
      here.set('GroupBudget', { vip: { ...BUDGET, budget } }),
      there.set('GroupRatio', { default: 1, vip: ratio }),
      there.change({ open: true }),
    ])
    expect(await here.vip()).toEqual({ ratio: BigInt(ratio), open: true, budget })
    await there.change({ open: false })
  }
})

test('a change that another node has overtaken is refused with the object as it is now', async () => {
  const { here, there } = await twoNodes()
  const refused = async (changes: Promise<unknown>[]): Promise<unknown> => {
    const ends = await Promise.allSettled(changes)
    return ends.flatMap((end) => (end.status === 'rejected' ? [(end.reason as GatewayError).present] : []))
  }
  const { version } = await here.group()
  const ofGroup = await refused([here.change({ ratio: '2', version }), there.change({ ratio: '3', version })])
  await here.liveConfig.reread()
  expect(ofGroup).toEqual([await here.group()])
  const option = await here.option('GroupRatio')
  const ofOption = await refused([
    here.set('GroupRatio', { default: 1, vip: 5 }, option?.version),
    there.set('GroupRatio', { default: 1, vip: 6 }, option?.version),
  ])
  await here.liveConfig.reread()
  expect(ofOption).toEqual([await here.option('GroupRatio')])
})
