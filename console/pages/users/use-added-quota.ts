import { useState } from 'react'
import { addQuota, type ManagedUser } from '../../api/users.ts'
import type { AddableAmount } from '../../components/add-amount-dialog.tsx'
import { useFormatters } from '../../components/session.tsx'
import { useTexts } from '../../locales/use-texts.tsx'
import { useUserChanges } from './use-user-changes.ts'

/** The dialog that increases the quota of a user. */
export function useAddedQuota() {
  const { users } = useTexts()
  const { money } = useFormatters()
  const { reload } = useUserChanges()
  const [addition, setAddition] = useState<AddableAmount>()
  const open = ({ id, username, quota }: ManagedUser): void =>
    setAddition({
      title: users.addQuota,
      name: username,
      present: quota,
      add: async (amount) => {
        await addQuota(id, amount)
        await reload()
        return users.added(money(amount), username)
      },
    })
  return { open, dialog: { addition, onClose: () => setAddition(undefined) } }
}
