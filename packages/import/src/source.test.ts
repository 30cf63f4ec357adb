import { describe, expect, test } from 'vitest'
import { mysqlAddress } from './source.ts'

const HERE = { host: 'db', port: 3306, user: 'ann', password: '', database: 'newapi', tls: 'none' }

describe('an address of MySQL', () => {
  test.each([
    ['mysql://ann@db/newapi', HERE],
    ['mariadb://ann:p%40ss@db:3307/newapi', { ...HERE, port: 3307, password: 'p@ss' }],
    ['mysql://ann@[::1]/newapi?tls=true', { ...HERE, host: '::1', tls: 'verified' }],
    ['ann@tcp(db)/newapi', HERE],
    [
      'ann:p@ss:w/rd@tcp(10.0.0.1:3307)/newapi?charset=utf8mb4&parseTime=true&tls=skip-verify',
      { ...HERE, host: '10.0.0.1', port: 3307, password: 'p@ss:w/rd', tls: 'unverified' },
    ],
    ['ann:x@tcp([::1]:3306)/newapi?tls=false', { ...HERE, host: '::1', password: 'x' }],
  ])(
    'the MySQL address %s of an import source is parsed to host, port, database, user and password',
    (place, expected) => {
      expect(mysqlAddress(place)).toEqual(expected)
    },
  )

  test.each(['one-api.db', '/srv/tcp(x).db', 'postgres://ann@db/newapi', 'https://db/newapi'])(
    'an import source is not treated as a MySQL address if it is %s',
    (place) => {
      expect(mysqlAddress(place)).toBeUndefined()
    },
  )

  test.each([
    ['mysql://ann:hidden@db', 'expected an address such as mysql://user@host/database'],
    ['mysql://db/newapi', 'expected an address such as mysql://user@host/database'],
    ['mysql://ann:%zz@db/newapi', 'expected an address such as mysql://user@host/database'],
    ['mysql://ann:hidden@db/newapi?tls=maybe', 'tls: expected true, false or skip-verify, not "maybe"'],
  ])('an invalid import source is refused with a message without its password: %s', (place, sentence) => {
    expect(() => mysqlAddress(place)).toThrow(sentence)
  })
})
