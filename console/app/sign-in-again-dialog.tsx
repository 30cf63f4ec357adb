import { Modal } from '@mantine/core'
import { useQueryClient } from '@tanstack/react-query'
import { basePath } from '../api/base-path.ts'
import { fetchSession, appShellQuery, signIn } from '../api/account.ts'
import { ProviderLinks } from '../components/provider-links.tsx'
import { SignInForm } from '../components/sign-in-form.tsx'
import { useTexts } from '../locales/use-texts.tsx'
import { continueAfterSignIn, leaveSession, useHasSessionEnded } from '../components/session-recovery.ts'

/** A z-index that is higher than that of dialogs that are already open. */
const ABOVE_ALL = 1000

/** A dialog for a new sign-in on top of the page, so that typed text is not lost. */
export function SignInAgainDialog() {
  const { shell, common } = useTexts()
  const isOver = useHasSessionEnded()
  const client = useQueryClient()
  const known = client.getQueryData(appShellQuery.queryKey)?.user
  return (
    <Modal
      opened={isOver}
      onClose={() => location.assign(`${basePath}/login`)}
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
          // Requests the account directly, because the query of the account may itself be waiting for this
          // sign-in.
          const shell = await fetchSession()
          client.setQueryData(appShellQuery.queryKey, shell)
          // A different user must not see the page that the previous user had opened.
          if (shell.user.id === known?.id) continueAfterSignIn()
          else leaveSession()
        }}
      />
      <ProviderLinks next="/" isInOtherTab />
    </Modal>
  )
}
