import { expect, test } from 'vitest'
import { type Cell, csvLine } from './csv.ts'

test.each<[string, Cell, string]>([
  ['a text', 'main', 'main'],
  ['a number', 12, '12'],
  ['a number below zero, which is no formula', -12, '-12'],
  ['yes', true, 'true'],
  ['nothing', null, ''],
  ['a comma', 'a,b', '"a,b"'],
  ['quotes, doubled', 'say "hi"', '"say ""hi"""'],
  ['a line break', 'a\nb', '"a\nb"'],
  ['a formula', '=HYPERLINK("http://x")', `"'=HYPERLINK(""http://x"")"`],
  ['a plus', '+1', "'+1"],
  ['a minus', '-cmd', "'-cmd"],
  ['an at', '@sum', "'@sum"],
  ['a tab', '\t=1', "'\t=1"],
  ['a carriage return', '\r=1', `"'\r=1"`],
  ['a full-width equals sign', '＝1+1', "'＝1+1"],
  ['a full-width plus', '＋1', "'＋1"],
  ['a full-width minus', '－1', "'－1"],
  ['a full-width at', '＠sum', "'＠sum"],
  ['a formula after spaces', '  =1', "'  =1"],
  ['a formula after a wide space', '\u3000＝1', "'\u3000＝1"],
  ['a formula after a byte order mark', '\uFEFF=1', "'\uFEFF=1"],
  ['a formula after a zero-width space', '\u200B=1', "'\u200B=1"],
  ['a formula after a control', '\u0001=1', "'\u0001=1"],
  ['a formula after a semicolon', ';=1', "';=1"],
  ['a formula after a comma', ',=1', `"',=1"`],
  ['a formula after separators of all kinds', ' ;|\t=1', "' ;|\t=1"],
  ['a formula after quotes', '"=1', `"'""=1"`],
  ['separators without a formula', ' ;a=1', ' ;a=1'],
  ['an equals sign further on', 'a=1', 'a=1'],
])('a CSV cell is written correctly with %s', (_, cell, expected) => {
  expect(csvLine([cell])).toBe(`${expected}\r\n`)
})

test('a CSV line is its cells between commas, with CR and LF at its end', () => {
  expect(csvLine(['a', 1, null])).toBe('a,1,\r\n')
})
