import { expect, test } from 'vitest'
import { durationText, parseDuration, parseSize, sizeText } from './units.ts'

test.each([
  ['500ms', 500],
  ['5s', 5_000],
  ['180s', 180_000],
  ['20m', 1_200_000],
  ['1h', 3_600_000],
  ['0s', 0],
  ['10', undefined],
  ['1.5s', undefined],
  ['-1s', undefined],
  ['5 minutes', undefined],
  ['5S', undefined],
  ['', undefined],
])('the duration %s is %s milliseconds', (text, expected) => {
  expect(parseDuration(text)).toBe(expected)
})

test.each([
  [1, '1ms'],
  [1_500, '1500ms'],
  [90_000, '90s'],
  [1_200_000, '20m'],
  [7_200_000, '2h'],
])('%s milliseconds are the duration %s', (milliseconds, text) => {
  expect(durationText(milliseconds)).toBe(text)
})

test.each([
  ['32MiB', 33_554_432],
  ['20MiB', 20_971_520],
  ['1KB', 1_000],
  ['1 KiB', 1_024],
  ['2GB', 2_000_000_000],
  ['17', 17],
  ['17B', 17],
  ['1kb', undefined],
  ['1.5MB', undefined],
  ['99999999999999999999', undefined],
  ['999999999999999GiB', undefined],
])('the size %s is %s bytes', (text, expected) => {
  expect(parseSize(text)).toBe(expected)
})

test.each([
  [33_554_432, '32MiB'],
  [10_000_000_000, '10GB'],
  [1_536, '1536'],
])('%s bytes are the size %s', (bytes, text) => {
  expect(sizeText(bytes)).toBe(text)
})
