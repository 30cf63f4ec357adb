import { expect, test } from 'vitest'
import { databaseTls, databaseWarning, expectedOfTls, sqlitePath, sqliteUrl } from './database-url.ts'

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

test.each([
  ['postgres://a@db/x', 'prefer', false, false, false],
  ['postgres://a@db/x?sslmode=disable', 'disable', false, false, false],
  ['postgres://a@db/x?sslmode=require', 'require', false, true, false],
  ['postgres://a@db/x?sslmode=require&sslrootcert=/ca', 'require', false, true, true],
  ['postgres://a@db/x?sslmode=verify-ca&sslrootcert=/ca', 'verify-ca', false, true, true],
  ['postgres://a@db/x?sslmode=verify-full', 'verify-full', false, true, true],
  ['postgres://a@db/x?ssl=true', 'verify-full', false, true, true],
  ['postgres://a@localhost/x', 'prefer', true, false, false],
  ['postgres://a@127.0.0.1:5433/x', 'prefer', true, false, false],
  ['postgres://a@[::1]/x', 'prefer', true, false, false],
  ['postgres://a@/x?host=/run/postgresql', 'prefer', true, false, false],
  ['postgres://a@%2Frun%2Fpostgresql/x', 'prefer', true, false, false],
])(
  '%s is connected to with %s; local: %s, encrypted: %s, checked: %s',
  (url, mode, isLocal, isEncrypted, isChecked) => {
    expect(databaseTls(url)).toEqual({ mode, isLocal, isEncrypted, isChecked })
  },
)

test.each([
  ['postgres://a@db/x', 'connections to the database may be unencrypted'],
  ['postgres://a@db/x?sslmode=disable', 'connections to the database are unencrypted'],
  ['postgres://a@db/x?sslmode=require', 'the certificate of the database is not checked'],
])('%s is warned of, with the parameter to add', (url, warning) => {
  const remedy = 'add sslmode=verify-full, and sslrootcert=FILE if its authority is a private one'
  expect(databaseWarning(url)).toBe(`${warning}: ${remedy}`)
})

test.each([
  'postgres://a@db/x?sslmode=verify-full',
  'postgres://a@db/x?sslmode=require&sslrootcert=/ca',
  'postgres://a@localhost/x?sslmode=disable',
])('%s is not warned of', (url) => {
  expect(databaseWarning(url)).toBeUndefined()
})

test('an unknown sslmode, and verify-ca without an authority, are mistakes', () => {
  expect(expectedOfTls('postgres://a@db/x?sslmode=no-verify')).toBe(
    'one of disable, prefer, require, verify-ca, verify-full as sslmode, found "no-verify"',
  )
  expect(expectedOfTls('postgres://a@db/x?sslmode=verify-ca')).toMatch(/^sslrootcert=FILE/)
  expect(expectedOfTls('postgres://a@db/x?sslmode=verify-ca&sslrootcert=/ca')).toBeUndefined()
})
