import { Modal } from '@mantine/core'
import { useQueryClient } from '@tanstack/react-query'
import { fetchSession, shellQuery, signIn } from '../api/account.ts'
import { SignInForm } from '../components/sign-in-form.tsx'
import { useTexts } from '../locales/use-texts.tsx'
import { continueAfterSignIn, useIsSessionOver } from './session-recovery.ts'

/** Above dialogs that are already open. */
const ABOVE_ALL = 1000

/** Requests a new sign-in over the page, so that typed text is not lost. */
export function SessionEnded() {
  const { shell, common } = useTexts()
  const isOver = useIsSessionOver()
  const client = useQueryClient()
  const known = client.getQueryData(shellQuery.queryKey)?.user
  return (
    <Modal
      opened={isOver}
      onClose={() => location.assign('/login')}
      title={shell.sessionEnded}
      zIndex={ABOVE_ALL}
      closeOnClickOutside={false}
      closeButtonProps={{ 'aria-label': common.close }}
    >
      <p>{shell.sessionEndedHint}</p>
      <SignInForm
        username={known?.username}
        onSubmit={async (credentials) => {
          await signIn(credentials)
          // The query itself may wait for the session.
          const shell = await fetchSession()
          client.setQueryData(shellQuery.queryKey, shell)
          // A page that another user had opened must not be shown to this one.
          if (shell.user.id === known?.id) continueAfterSignIn()
          else location.assign('/')
        }}
      />
    </Modal>
  )
}
