import { Role } from '../domain/role.ts'
import type { QuotaDisplay } from '../management/settings/quota-display.ts'
import type { UserObject } from '../management/users/user-object.ts'
import { budgetText, isBudgetUsedUp } from './budget-text.ts'
import { quotaText } from './quota-text.ts'
import type { Column } from './table.ts'

const NAMES = new Map<number, string>(Object.entries(Role).map(([name, role]) => [role, name]))

/** The columns of `sluice user list`. */
export function userColumns(display: QuotaDisplay): readonly Column<UserObject>[] {
  return [
    { title: 'ID', cell: ({ id }) => String(id), right: true },
    { title: 'NAME', cell: ({ username }) => username },
    { title: 'ROLE', cell: ({ role }) => NAMES.get(role) ?? String(role) },
    {
      title: 'STATUS',
      cell: ({ status }) => (status === 1 ? 'enabled' : 'disabled'),
      warns: ({ status }) => status !== 1,
    },
    { title: 'GROUP', cell: ({ group }) => group },
    {
      title: 'QUOTA',
      cell: ({ quota }) => quotaText(quota, display),
      right: true,
      warns: ({ quota }) => quota <= 0,
    },
    { title: 'USED', cell: ({ used_quota }) => quotaText(used_quota, display), right: true },
    { title: 'BUDGET', cell: (user) => budgetText(user, display), warns: isBudgetUsedUp },
    { title: 'REQUESTS', cell: ({ request_count }) => String(request_count), right: true },
  ]
}
