import { expect, test } from 'vitest'
import { texts as en } from './en.ts'
import { texts as zh } from './zh.ts'

/** Words of a table's cell and of a checkbox: sentences by their grammar, and without a full stop as their neighbours. */
const LABELS = /^(?:usage\.refusals|audit\.words)\.|Label$/
/** A verb of a main clause; what follows "that" or "which" belongs to a noun. */
const VERB =
  /(?<!\b(?:that|what|which|who|should) )\b(?:is|are|was|were|has|have|can|cannot|could|does|did|must|will|may|needs|stays|ends|applies)\b/
const ENDS = { en: /[.?!:…]["”)]?$/, zh: /[。？！：…]["”）]?$/ }

/** The texts by their paths; a text with values is shown with the value 3 for each. */
function* textsOf(part: object, path = ''): Generator<readonly [path: string, text: string]> {
  for (const [name, value] of Object.entries(part) as [string, unknown][]) {
    const shown: unknown =
      typeof value === 'function' ? Reflect.apply(value, undefined, ['3', '3', '3', '3']) : value
    if (typeof shown === 'string') yield [`${path}${name}`, shown]
    else if (typeof shown === 'object' && shown !== null) yield* textsOf(shown, `${path}${name}.`)
  }
}

test('a sentence ends in a full stop, and a text does so in both languages or in neither', () => {
  const chinese = new Map(textsOf(zh))
  const faults: string[] = []
  let sentences = 0
  for (const [path, text] of textsOf(en)) {
    const stopped = ENDS.en.test(text)
    if (stopped) sentences += 1
    const isSentence = VERB.test(text) && text.split(' ').length >= 7
    if (isSentence && !stopped && !LABELS.test(path)) faults.push(`${path}: ${text}`)
    const other = chinese.get(path)
    if (text.split(' ').length >= 4 && other !== undefined && stopped !== ENDS.zh.test(other))
      faults.push(`${path}: ${text} / ${other}`)
  }
  expect(faults).toEqual([])
  expect(sentences).toBeGreaterThan(300)
})
