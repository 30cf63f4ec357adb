import { randomBytes } from 'node:crypto'
import { describe, expect, onTestFinished, test } from 'vitest'
import { ENGINES } from '../../../test/stores/engines.ts'
import { refuseTransactionPooler } from './refuse-transaction-pooler.ts'

const HERE = ENGINES.filter(({ name }) => name === 'PostgreSQL')

describe.each(HERE)('the test for poolers on $name', (engine) => {
  test('a start that gets only one connection keeps none open', async () => {
    const database = await engine.database()
    const role = `single_${randomBytes(6).toString('hex')}`
    await database.sql(`create role ${role} login password 'p' connection limit 1`)
    onTestFinished(async () => void (await database.sql(`drop role ${role}`)))
    const url = new URL(database.place)
    Object.assign(url, { username: role, password: 'p' })
    await expect(refuseTransactionPooler(url.href)).rejects.toThrow('too many connections for role')
    const sessions = `select pid from pg_stat_activity where usename = '${role}'`
    await expect.poll(() => database.sql(sessions)).toEqual([])
  })
})
