import { useForm } from '@mantine/form'
import { changeUser, type ManagedUser } from '../../api/users.ts'
import { characterCount } from '../../components/character-count.ts'
import { NewPasswordInput } from '../../components/new-password-input.tsx'
import { showNotice } from '../../components/notify.tsx'
import { RefusalMessage } from '../../components/refusal-message.tsx'
import { useAction } from '../../components/use-action.ts'
import { useTexts } from '../../locales/use-texts.tsx'
import { FormChange, FormDialog } from '../../components/form-dialog.tsx'
import { FormActions } from '../../components/form-actions.tsx'
import { useUserChanges } from './use-user-changes.ts'

const MIN_LENGTH = 8

interface Dialog {
  readonly user: ManagedUser
  readonly opened: boolean
  readonly onClose: () => void
}

/** Sets the password of a user, which ends the user's sessions. */
export function SetPasswordDialog({ user, opened, onClose }: Dialog) {
  const { users } = useTexts()
  return (
    <FormDialog opened={opened} onClose={onClose} title={users.setPassword}>
      <PasswordForm user={user} onClose={onClose} />
    </FormDialog>
  )
}

function PasswordForm({ user, onClose }: Pick<Dialog, 'user' | 'onClose'>) {
  const { users, account } = useTexts()
  const { reload } = useUserChanges()
  const form = useForm({
    mode: 'controlled',
    initialValues: { password: '' },
    validate: { password: (text) => (characterCount(text) < MIN_LENGTH ? account.shortPassword : null) },
  })
  const saving = useAction(async ({ password }: { password: string }) => {
    await changeUser(user.id, { password })
    await reload()
    showNotice(users.passwordSet(user.username))
    onClose()
  })
  return (
    <form noValidate onSubmit={form.onSubmit((typed) => void saving.run(typed))}>
      <FormChange isChanged={form.isDirty()} />
      <input type="text" hidden readOnly autoComplete="username" value={user.username} />
      <NewPasswordInput
        label={account.newPassword}
        description={users.passwordHint}
        data-autofocus
        onGenerate={(password) => form.setFieldValue('password', password)}
        {...form.getInputProps('password')}
      />
      <RefusalMessage error={saving.error} />
      <FormActions label={users.setPassword} isRunning={saving.isRunning} onCancel={onClose} />
    </form>
  )
}
