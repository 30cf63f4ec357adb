import { describe, expect, test } from 'vitest'
import { openedStore } from '../../test/stores/rows.ts'
import { changeGroup, createGroup } from '../management/groups/change-group.ts'
import type { AdministrationServices } from '../management/services.ts'
import { listOptions } from '../management/settings/list-options.ts'
import { setOption } from '../management/settings/set-option.ts'
import type { Store } from '../store/store.ts'
import { readConfig } from './config.ts'
import { readEnvironment } from './environment.ts'
import { LiveConfig } from './live-config.ts'

const CONFIG = readConfig(readEnvironment({ DATA_DIR: '/nowhere' }, {}, '/'))

async function nodeOn(store: Store): Promise<AdministrationServices> {
  const liveConfig = await LiveConfig.open(store, CONFIG, () => {})
  const node = { store, liveConfig, settings: () => liveConfig.settings, nowMs: () => 0 }
  return node as unknown as AdministrationServices
}

/** Two nodes on one database. `meanwhile` runs once, when the first one has read and is about to write. */
async function twoNodes() {
  const store = await openedStore()
  const other = await nodeOn(store)
  await createGroup(other, { group: 'vip' })
  let meanwhile: (() => Promise<unknown>) | undefined
  const read = store.read.bind(store)
  const write: Store['write'] = async (...given) => {
    const once = meanwhile
    meanwhile = undefined
    await once?.()
    return store.write(...given)
  }
  const first = await nodeOn({ read, write } as unknown as Store)
  const entries = async () => (await store.read('storedConfiguration')).entries
  return { first, other, entries, before: (work: () => Promise<unknown>) => void (meanwhile = work) }
}

describe('changes on two nodes at once', () => {
  test('of different settings of a group all stay', async () => {
    const { first, other, entries, before } = await twoNodes()
    before(() => changeGroup(other, { group: 'vip', open: true }))
    await changeGroup(first, { group: 'vip', ratio: '0.5' })
    expect(await entries()).toEqual([{ section: 'groups', name: 'vip', value: { ratio: '0.5', open: true } }])
  })

  test('of different options about the same model or group all stay', async () => {
    const { first, other, entries, before } = await twoNodes()
    await setOption(first, { key: 'ModelRatio', value: '{"m":1}' })
    before(() => setOption(other, { key: 'ModelRatio', value: '{"m":2}' }))
    await setOption(first, { key: 'CompletionRatio', value: '{"m":3}' })
    before(() => changeGroup(other, { group: 'vip', ratio: '0.5' }))
    await setOption(first, { key: 'UserUsableGroups', value: '{"default":"","vip":""}' })
    expect(await entries()).toMatchObject([
      { section: 'groups', name: 'vip', value: { ratio: '0.5', open: true } },
      { section: 'ratios', name: 'm', value: { model: '2', completion: '3' } },
    ])
  })

  test('are made from what is stored, also before a node has heard of the change of another one', async () => {
    const { first, other, entries } = await twoNodes()
    await changeGroup(other, { group: 'vip', ratio: '0.5' })
    await setOption(first, { key: 'UserUsableGroups', value: '{"default":"","vip":""}' })
    expect(await entries()).toEqual([{ section: 'groups', name: 'vip', value: { ratio: '0.5', open: true } }])
  })

  test('with the same version of an option are not both accepted, and the second is a 409 with the present option', async () => {
    const { first, other, before } = await twoNodes()
    before(() => setOption(other, { key: 'hold_tokens', value: '7' }))
    const { version } = (await listOptions(first)).find(({ key }) => key === 'hold_tokens') ?? {}
    await expect(setOption(first, { key: 'hold_tokens', value: '8', version })).rejects.toMatchObject({
      code: 'changed_meanwhile',
      present: { value: '7' },
    })
  })
})
