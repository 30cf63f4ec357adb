import { describe, expect, test } from 'vitest'
import { ENGINES, openedRows } from '../../../test/stores/engines.ts'
import { failingWrites, keptStore, partsIn, responseRow } from '../../../test/stores/kept.ts'
import type { StoredContent } from '../../domain/stored-response.ts'
import type { RowStore } from '../../store/store.ts'
import { ResponseStore } from './response-store.ts'

const ID = `resp_${'a'.repeat(44)}`
const SMALL: StoredContent = { input: '["question 😀"]', response: '{"output":[]}' }
/** The input ends within the second part, and parts begin within a character. */
const LARGE: StoredContent = {
  input: `["x${'😀'.repeat(100_000)}"]`,
  response: `{"output":"${'é'.repeat(300_000)}"}`,
}

function responsesOn(rows: RowStore): ResponseStore {
  return new ResponseStore({ rows, tag: () => 'tag', kept: keptStore(rows), onLost: () => {} })
}

/** The texts of a response, assembled from their parts. */
async function contentOf(responses: ResponseStore): Promise<Record<string, string>> {
  const texts: Record<string, string> = {}
  for (const name of ['input', 'response'] as const)
    for await (const text of responses.text(2, ID, name).parts()) texts[name] = (texts[name] ?? '') + text
  return texts
}

describe.each(ENGINES)('the texts of a kept response, on $name', (engine) => {
  test.each([
    ['small', SMALL, 0],
    ['large', LARGE, 4],
  ] as const)(
    'a %s input and output are read back with their size, by their user only',
    async (_, content, parts) => {
      const { store, database } = await openedRows(engine)
      const responses = responsesOn(store)
      await responses.keep(() => ({ response: responseRow(ID), content }))
      expect(await partsIn(database)).toBe(parts)
      expect(await contentOf(responses)).toEqual(content)
      const bytes = Buffer.byteLength(content.input) + Buffer.byteLength(content.response)
      expect((await responses.facts(2, ID))?.contentBytes).toBe(bytes)
      expect(await responses.facts(3, ID)).toBeUndefined()
      await expect(responses.text(3, ID, 'input').part(0)).rejects.toMatchObject({ code: 'not_found' })
    },
  )

  test('a part can be read again after later ones, with the same text', async () => {
    const { store } = await openedRows(engine)
    await responsesOn(store).keep(() => ({ response: responseRow(ID), content: LARGE }))
    for (const name of ['input', 'response'] as const) {
      const text = responsesOn(store).text(2, ID, name)
      const parts: string[] = []
      for await (const part of text.parts()) parts.push(part)
      expect(parts.length).toBeGreaterThan(1)
      for (const [index, part] of [...parts.entries()].toReversed())
        expect(await text.part(index)).toEqual({ text: part, isLast: index === parts.length - 1 })
    }
  })

  test('a response that is removed while it is read is not found any more', async () => {
    const { store, database } = await openedRows(engine)
    const responses = responsesOn(store)
    await responses.keep(() => ({ response: responseRow(ID), content: LARGE }))
    const text = responses.text(2, ID, 'response')
    await text.part(0)
    await responses.remove(2, ID)
    await expect(text.part(1)).rejects.toMatchObject({ code: 'not_found' })
    expect([await responses.facts(2, ID), await partsIn(database)]).toEqual([undefined, 0])
  })

  test.each(['deleteResponse', 'removeKept'])(
    'a deletion that stops before %s leaves a response that can be deleted again, or nothing',
    async (failing) => {
      const { store, database } = await openedRows(engine)
      const responses = responsesOn(store)
      await responses.keep(() => ({ response: responseRow(ID), content: SMALL }))
      await expect(responsesOn(failingWrites(store, failing)).remove(2, ID)).rejects.toThrow('stopped')
      if (await responses.facts(2, ID)) await responses.remove(2, ID)
      expect(await database.sql('SELECT kind FROM kept')).toEqual([])
    },
  )
})
