import { expect, test } from 'vitest'
import { newUser, openedStore } from '../../../test/stores/rows.ts'
import { Ledger } from '../../accounts/ledger/ledger.ts'
import type { ManagedUser } from '../../domain/records/user.ts'
import type { Store } from '../../store/store.ts'
import type { ManagementServices } from '../services.ts'
import { changedUserInput, changeUser } from './change-user.ts'

/** Services on this store, of which a read of a managed user is followed by `afterRead`. */
function servicesOn(store: Store, afterRead: () => Promise<unknown>): ManagementServices {
  const read = async (name: 'managedUser', input: { userId: number }): Promise<ManagedUser | null> => {
    const user = await store.read(name, input)
    if (name === 'managedUser') await afterRead()
    return user
  }
  return {
    store: { read, write: store.write.bind(store) },
    ledger: new Ledger(store, 'run'),
    apiKeys: { forgetUser: () => {} },
    settings: () => ({ options: { quota_per_unit: 500_000 }, groups: new Map() }),
    nowMs: () => 0,
  } as unknown as ManagementServices
}

test('an administrator who sends own values back keeps what a charge or root changes meanwhile', async () => {
  const store = await openedStore()
  const { id } = await store.write('createUser', newUser({ username: 'adam', role: 10, quota: 1000 }))
  const shown = (await store.read('managedUser', { userId: id })) as ManagedUser
  const meanwhile = { group: 'vip', role: 1, unlimited_quota: true } as const
  const services = servicesOn(store, () =>
    store.write('changeUser', {
      userId: id,
      fields: meanwhile,
      quota: { mode: 'subtract', value: 300, maxQuota: 1e9 },
    }),
  )
  const { username, display_name, group, role, quota, unlimited_quota } = shown
  const input = { id, username, display_name, group, role, quota, unlimited_quota, remark: 'on leave' }
  await changeUser(services, changedUserInput.parse(input), { id, role: 10 })
  const after = await store.read('managedUser', { userId: id })
  expect(after).toMatchObject({ ...meanwhile, quota: 700, remark: 'on leave' })
})
