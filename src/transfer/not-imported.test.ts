import type { OtherGatewayDatabase, NotImportedTable } from '@sluice/import/other-gateway'
import { expect, test } from 'vitest'
import { listNotImported } from './not-imported.ts'

const source = (
  leftTables: readonly NotImportedTable[],
  users: OtherGatewayDatabase['users'] = [],
): OtherGatewayDatabase => ({
  family: 'new-api',
  users,
  tokens: [],
  channels: [],
  options: new Map(),
  leftTables,
})

test('an import reports tables that it skips with their row count, "more than 1000000" or an unknown number', () => {
  const lines = listNotImported(
    source([
      { name: 'logs', rows: 1_000_001 },
      { name: 'passkey_credentials', rows: undefined },
    ]),
  )
  expect(lines.map(({ notes, count }) => [...notes, count])).toEqual([
    ['more than 1000000 entries of the log', 1_000_001],
    ['an unknown number of passkeys', undefined],
  ])
})

test('the report of logins that are not imported leaves out those of deleted users', () => {
  const users = [
    { id: 1, username: 'ann', status: 1, telegram_id: '7' },
    { id: 2, username: 'bob', status: 1, telegram_id: '8', deleted_at: '2026-01-01' },
  ]
  expect(listNotImported(source([], users))).toMatchObject([{ kind: 'login', name: 'Telegram', count: 1 }])
})
