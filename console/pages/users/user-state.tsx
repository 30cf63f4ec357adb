import { StateMark } from '../../components/state-mark.tsx'
import { useTexts } from '../../locales/use-texts.tsx'

const ENABLED = 1

/** Shows whether a user may sign in and make calls. */
export function UserState({ status }: { readonly status: number }) {
  const { users } = useTexts()
  return status === ENABLED ? (
    <StateMark tone="ok" word={users.enabled} />
  ) : (
    <StateMark tone="off" word={users.disabled} />
  )
}
