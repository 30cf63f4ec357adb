import { Button, TextInput } from '@mantine/core'
import { useForm } from '@mantine/form'
import { useQueryClient } from '@tanstack/react-query'
import { changeProfile, appShellQuery } from '../../api/account.ts'
import { ConfirmLeave } from '../../components/confirm-leave.tsx'
import { FormSection } from '../../components/form-section.tsx'
import { showNotice } from '../../components/notify.tsx'
import { PageHead } from '../../components/page-head.tsx'
import { RefusalMessage } from '../../components/refusal-message.tsx'
import { useSignedInAccount } from '../../components/session.tsx'
import { useAction } from '../../components/use-action.ts'
import { useTexts } from '../../locales/use-texts.tsx'
import { AccessTokenSection } from './access-token-section.tsx'
import { DisplaySection } from './display-section.tsx'
import { IdentitiesSection } from './identities-section.tsx'
import { PasswordSection } from './password-section.tsx'
import { SessionsSection } from './sessions-section.tsx'

/** The settings of the user's own account. */
export function AccountPage() {
  const { account } = useTexts()
  return (
    <>
      <PageHead title={account.title} />
      <ProfileSection />
      <PasswordSection />
      <IdentitiesSection />
      <DisplaySection />
      <AccessTokenSection />
      <SessionsSection />
    </>
  )
}

function ProfileSection() {
  const { account, users, common } = useTexts()
  const { profile } = useSignedInAccount()
  const client = useQueryClient()
  const roles: Readonly<Record<number, string>> = users.roles
  const form = useForm({
    mode: 'controlled',
    initialValues: { name: profile.display_name },
    validate: { name: (name) => (name.trim() === '' ? common.required : null) },
  })
  const saving = useAction(async (name: string) => {
    const changed = await changeProfile({ display_name: name.trim() })
    client.setQueryData(appShellQuery.queryKey, (shell) => shell && { ...shell, user: changed })
    form.resetDirty({ name })
    showNotice(common.saved)
  })
  return (
    <FormSection title={account.profile} text={`${profile.username} · ${roles[profile.role] ?? ''}`}>
      <form noValidate onSubmit={form.onSubmit(({ name }) => void saving.run(name))}>
        <TextInput label={account.displayName} autoComplete="name" mb="md" {...form.getInputProps('name')} />
        <RefusalMessage error={saving.error} />
        <ConfirmLeave isChanged={form.isDirty()} />
        <Button type="submit" variant="default" loading={saving.isRunning}>
          {common.save}
        </Button>
      </form>
    </FormSection>
  )
}
