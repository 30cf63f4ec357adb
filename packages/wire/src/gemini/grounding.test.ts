import fc from 'fast-check'
import { expect, test } from 'vitest'
import { anyCharacter } from '../../../../test/generators/characters.ts'
import type { Citation } from '../reply.ts'
import { citationFinderOf, GroundingCollector } from './grounding.ts'

/** Texts in the order in which they grew, with spans of code points in each. */
const answers = fc.array(
  fc
    .string({ unit: anyCharacter, minLength: 1, maxLength: 12 })
    .filter((text) => text.isWellFormed())
    .chain((text) => {
      const length = Array.from(text).length
      const span = fc
        .tuple(fc.nat(length - 1), fc.nat(length))
        .map(([start, size]) => ({ start, end: Math.min(length, start + 1 + size) }))
      const citation = fc.record({
        url: fc.constantFrom('https://a.test/', 'https://b.test/'),
        title: fc.constant('T'),
        span,
      })
      return fc.record({ text: fc.constant(text), citations: fc.array(citation, { maxLength: 3 }) })
    }),
  { maxLength: 4 },
)

test("a Gemini answer of several text parts writes each citation's position as one within the joined text", () => {
  fc.assert(
    fc.property(answers, (parts) => {
      const grounding = new GroundingCollector()
      let points = 0
      const expected: Citation[] = []
      for (const [index, { text, citations }] of parts.entries()) {
        grounding.add({ kind: 'text', text, citations }, index)
        for (const { span, ...page } of citations)
          expected.push({ ...page, span: { start: points + span.start, end: points + span.end } })
        points += Array.from(text).length
      }
      const written = JSON.parse(`{${grounding.write()}"index":0}`) as Record<string, unknown>
      const read = citationFinderOf(written)?.(parts.map(({ text }) => text).join('')) ?? []
      expect(read).toEqual(expected)
    }),
  )
})
