import { describe, expect, test } from 'vitest'
import { ENGINES, openedRows } from '../../../test/stores/engines.ts'
import type { ChannelDefinition } from '../../domain/records/channel.ts'

const channel = (name: string, of: Partial<ChannelDefinition> = {}): ChannelDefinition => ({
  name,
  declared: { protocol: 'chat', base_url: 'https://a.example/v1', models: ['m'] },
  keys: ['key-one', 'key-two'],
  status: 1,
  family: { type: 1, tag: 'blue' },
  ...of,
})

describe.each(ENGINES)('settings beside gateway.yaml, on $name', (engine) => {
  test('a new database contains no stored channels or settings', async () => {
    const { store } = await openedRows(engine)
    expect(await store.read('storedConfiguration')).toEqual({ channels: [], entries: [] })
  })

  test('channels are read from the database as they were stored, and their keys are encrypted there', async () => {
    const { store, database } = await openedRows(engine)
    const ids = await store.write('createChannels', {
      channels: [channel('a'), channel('b', { keys: [], status: 2 })],
      created_time: 7,
    })
    const { channels } = await store.read('storedConfiguration')
    expect(channels).toEqual([
      {
        ...channel('a'),
        id: ids[0],
        version: expect.any(String),
        created_time: 7,
        test_time: 0,
        response_ms: 0,
      },
      {
        ...channel('b', { keys: [], status: 2 }),
        id: ids[1],
        version: expect.any(String),
        created_time: 7,
        test_time: 0,
        response_ms: 0,
      },
    ])
    const [row] = await database.sql('SELECT * FROM channels ORDER BY id LIMIT 1')
    expect(JSON.stringify(row)).not.toContain('key-one')
  })

  test('a stored channel can be replaced, marked as tested and removed; an unknown id changes nothing', async () => {
    const { store } = await openedRows(engine)
    const [id = 0] = await store.write('createChannels', { channels: [channel('a')], created_time: 7 })
    const version = await store.write('changeChannel', { id, channel: channel('z', { keys: ['k'] }) })
    expect(await store.write('changeChannel', { id: id + 1, channel: channel('y') })).toBeNull()
    await store.write('recordChannelTest', { id, test_time: 9, response_ms: 120 })
    expect((await store.read('storedConfiguration')).channels).toEqual([
      { ...channel('z', { keys: ['k'] }), id, version, created_time: 7, test_time: 9, response_ms: 120 },
    ])
    expect(await store.write('deleteChannels', { ids: [id, id + 1] })).toBe(1)
    expect(await store.write('deleteChannels', { ids: [] })).toBe(0)
    const [next] = await store.write('createChannels', { channels: [channel('a')], created_time: 8 })
    expect(next).toBeGreaterThan(id)
  })

  test("a channel's name is unique, and creating several channels stores none if one name is in use", async () => {
    const { store } = await openedRows(engine)
    const [a = 0] = await store.write('createChannels', { channels: [channel('a')], created_time: 7 })
    await expect(
      store.write('createChannels', { channels: [channel('b'), channel('a')], created_time: 7 }),
    ).rejects.toThrow('name: there is a channel "a" already')
    expect((await store.read('storedConfiguration')).channels).toHaveLength(1)
    const [b = 0] = await store.write('createChannels', { channels: [channel('b')], created_time: 7 })
    await expect(store.write('changeChannel', { id: b, channel: channel('a') })).rejects.toThrow(/already/)
    await store.write('changeChannel', { id: a, channel: channel('a', { status: 2 }) })
    const { channels } = await store.read('storedConfiguration')
    expect(channels.map(({ name, status }) => [name, status])).toEqual([
      ['a', 2],
      ['b', 1],
    ])
  })

  test('encrypted channel keys that were moved to another database row cannot be decrypted', async () => {
    const { store, database } = await openedRows(engine)
    await store.write('createChannels', { channels: [channel('a'), channel('b')], created_time: 7 })
    await database.sql(
      "UPDATE channels SET keys_cipher = (SELECT keys_cipher FROM channels WHERE name = 'a') WHERE name = 'b'",
    )
    await expect(store.read('storedConfiguration')).rejects.toThrow()
  })

  test('stored settings can be set, replaced and removed, and are read by section and name', async () => {
    const { store } = await openedRows(engine)
    await store.write('setStoredSettings', {
      changes: [
        { section: 'ratios', name: 'm', value: { model: '1.25' } },
        { section: 'groups', name: 'vip', value: { ratio: '0.8', open: false } },
        { section: 'groups', name: 'Zoo', value: { ratio: '1', open: true } },
        { section: 'options', name: 'retries', value: '3' },
      ],
    })
    await store.write('setStoredSettings', {
      changes: [
        { section: 'options', name: 'retries', value: '4' },
        { section: 'ratios', name: 'm', value: undefined },
      ],
    })
    expect((await store.read('storedConfiguration')).entries).toEqual([
      { section: 'groups', name: 'Zoo', value: { ratio: '1', open: true } },
      { section: 'groups', name: 'vip', value: { ratio: '0.8', open: false } },
      { section: 'options', name: 'retries', value: '4' },
    ])
  })
})
