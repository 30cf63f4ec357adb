import { useQueryClient } from '@tanstack/react-query'
import { type ManagedUser, manageUser } from '../../api/users.ts'
import { showNotice, showFailure } from '../../components/notify.tsx'
import { useSignedInAccount } from '../../components/session.tsx'
import { useTexts } from '../../locales/use-texts.tsx'

/** Functions that change a user and then reload the lists of users. */
export function useUserChanges() {
  const texts = useTexts()
  const { users, keys } = texts
  const { profile } = useSignedInAccount()
  const client = useQueryClient()
  const reload = async (): Promise<void> => {
    await Promise.all(
      ['users', 'user'].map((name) => client.invalidateQueries({ queryKey: [profile.id, name] })),
    )
  }
  const turn = async (user: ManagedUser, isEnabled: boolean): Promise<void> => {
    try {
      await manageUser(user.id, isEnabled ? 'enable' : 'disable')
      await reload()
      if (!isEnabled)
        showNotice(users.switchedOff(user.username), { label: keys.undo, run: () => void turn(user, true) })
    } catch (error) {
      showFailure(error, texts)
    }
  }
  return { turn, reload }
}
