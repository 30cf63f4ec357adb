import { expect, test } from 'vitest'
import { growthOf, LINEAR_GROWTH } from '../../test/fixtures/pace.ts'
import { plainText } from './plain-text.ts'

test.each([
  ['<p>Bad <b>gateway</b></p>', 'Bad  gateway'],
  ['<script type="x">if (a < b) c()</script >Bad<style>p {}</style>', 'Bad'],
  ['Bad<script>a()', 'Bad'],
  ['Bad<SCRIPT>a()</script', 'Bad'],
  ['<script></script>', undefined],
])('of a body in HTML, only the text is read: %s', (body, expected) => {
  expect(plainText(Buffer.from(body), 1_000)).toBe(expected)
})

test.each(['<script</script', '<script', '</script', '<script></script>', '<style<', '<', '<a'])(
  'the text of a body is read in time proportional to its length, however often it contains %s',
  async (piece) => {
    const body = (size: number): Buffer => Buffer.from(piece.repeat(size / piece.length))
    const read = (bytes: Buffer): unknown => plainText(bytes, bytes.length)
    expect(await growthOf(16_000, body, read)).toBeLessThan(LINEAR_GROWTH)
  },
)
