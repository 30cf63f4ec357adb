import { useQuery } from '@tanstack/react-query'
import { groupBudgetsQuery, type ManagedUser } from '../../api/users.ts'
import { BudgetMeters } from '../../components/budget-meter.tsx'
import { useSignedInAccount } from '../../components/session.tsx'

/** The budgets of a user and of the user's group, each as a meter. */
export function UserBudgets({ user }: { readonly user: ManagedUser }) {
  const { profile } = useSignedInAccount()
  const { data: groups = [] } = useQuery(groupBudgetsQuery(profile.id))
  const ofGroup = groups.filter(({ group }) => group === user.group)
  return (
    <BudgetMeters
      budgets={[
        { name: user.username, state: user },
        ...ofGroup.map(({ group, ...state }) => ({ name: group, state })),
      ]}
    />
  )
}
