import { expect, test } from 'vitest'
import { sqlitePath, sqliteUrl } from './database-url.ts'

test.each([
  ['sqlite:/var/lib/sluice/sluice.db', '/var/lib/sluice/sluice.db'],
  ['SQLite:other.db', 'other.db'],
  ['sqlite:', ''],
  ['postgres://ann@host/sluice', undefined],
  ['/data/sqlite:x.db', undefined],
])('the URL %s names the file %s', (url, path) => {
  expect(sqlitePath(url)).toBe(path)
})

test('the path of a database file with any name can be converted to a database URL and back', () => {
  for (const path of ['/a b/c.db', '/a\nb.db', '/sqlite:/x']) expect(sqlitePath(sqliteUrl(path))).toBe(path)
})
