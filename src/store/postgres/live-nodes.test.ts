import { describe, expect, test } from 'vitest'
import { BANKS, bankFixture, exactly } from '../../../test/ledger/bank-fixture.ts'
import { LiveNodes } from './live-nodes.ts'

describe.each(BANKS)('nodes on $name', (engine) => {
  test('live nodes are those that have reported to the quota bank in the last ten seconds, and have not left', async () => {
    const { connection, node, setSilence } = await bankFixture(engine)
    const nodes = new LiveNodes(connection, 'a')
    expect(nodes.names).toEqual(['a'])
    const read = async (): Promise<readonly string[]> => {
      nodes.expire()
      await nodes.refresh()
      return nodes.names
    }
    for (const name of ['a', 'b', 'c']) await node(name).apply([], [])
    expect(await read()).toEqual(['a', 'b', 'c'])
    await setSilence('b', 11)
    expect(await read()).toEqual(['a', 'c'])
    await node('c').leave()
    expect(await read()).toEqual(['a'])
  })

  test('the list of live nodes is read again only after it has expired, not at every use', async () => {
    const { connection, node } = await bankFixture(engine)
    const nodes = new LiveNodes(connection, 'a')
    await node('a').acquire([exactly(10)])
    await nodes.refresh()
    await node('b').apply([], [])
    await nodes.refresh()
    expect(nodes.names).toEqual(['a'])
    nodes.expire()
    await nodes.refresh()
    expect(nodes.names).toEqual(['a', 'b'])
  })
})
