import { Button, PasswordInput, Stack } from '@mantine/core'
import { useForm } from '@mantine/form'
import { useQueryClient } from '@tanstack/react-query'
import { ApiError } from '../../api/api-error.ts'
import { appShellQuery, changePassword, setFirstPassword } from '../../api/account.ts'
import { characterCount } from '../../components/character-count.ts'
import { FormSection } from '../../components/form-section.tsx'
import { showNotice } from '../../components/notify.tsx'
import { RefusalMessage } from '../../components/refusal-message.tsx'
import { useSignedInAccount } from '../../components/session.tsx'
import { useAction } from '../../components/use-action.ts'
import { useTexts } from '../../locales/use-texts.tsx'

const MIN_LENGTH = 8
const NO_TOGGLE = { 'aria-hidden': true } as const

/** Sets the first password, or changes it. */
export function PasswordSection() {
  const { account, common } = useTexts()
  const { profile } = useSignedInAccount()
  const client = useQueryClient()
  const isFirst = !profile.has_password
  const form = useForm({
    mode: 'uncontrolled',
    initialValues: { current: '', next: '' },
    validate: {
      current: (text) => (isFirst || text !== '' ? null : common.required),
      next: (text) => (characterCount(text) < MIN_LENGTH ? account.shortPassword : null),
    },
  })
  const saving = useAction(async ({ current, next }: { current: string; next: string }) => {
    try {
      await (isFirst ? setFirstPassword(next) : changePassword(profile.username, current, next))
    } catch (error) {
      if (!(error instanceof ApiError) || error.field !== 'original_password') throw error
      form.setFieldError('current', account.wrongPassword)
      return
    }
    await client.invalidateQueries({ queryKey: appShellQuery.queryKey })
    form.reset()
    showNotice(isFirst ? account.passwordSet : account.passwordChanged)
  })
  return (
    <FormSection title={account.password} text={isFirst ? account.firstPasswordHint : account.passwordHint}>
      <form noValidate onSubmit={form.onSubmit((typed) => void saving.run(typed))}>
        <Stack gap="md">
          <input type="text" hidden readOnly autoComplete="username" value={profile.username} />
          {!isFirst && (
            <PasswordInput
              key={form.key('current')}
              label={account.currentPassword}
              autoComplete="current-password"
              visibilityToggleButtonProps={NO_TOGGLE}
              {...form.getInputProps('current')}
            />
          )}
          <PasswordInput
            key={form.key('next')}
            label={account.newPassword}
            autoComplete="new-password"
            visibilityToggleButtonProps={NO_TOGGLE}
            {...form.getInputProps('next')}
          />
          <RefusalMessage error={saving.error} />
          <Button type="submit" variant="default" loading={saving.isRunning} style={{ alignSelf: 'start' }}>
            {isFirst ? account.setPassword : account.changePassword}
          </Button>
        </Stack>
      </form>
    </FormSection>
  )
}
