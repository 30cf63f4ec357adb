import { Select, Stack, Switch, TextInput } from '@mantine/core'
import { useForm } from '@mantine/form'
import { useQuery } from '@tanstack/react-query'
import { Role, ROLES } from '../../../src/domain/role.ts'
import { ApiError } from '../../api/api-error.ts'
import { createUser, groupsQuery } from '../../api/users.ts'
import { characterCount } from '../../components/character-count.ts'
import { ContentInputs, useContentRules } from '../../components/content-inputs.tsx'
import { LimitInputs, useLimitRules } from '../../components/limit-inputs.tsx'
import { moneyUnit, parseMoney } from '../../components/money.ts'
import { NewPasswordInput } from '../../components/new-password-input.tsx'
import { showNotice } from '../../components/notify.tsx'
import { RefusalMessage } from '../../components/refusal-message.tsx'
import { useSignedInAccount } from '../../components/session.tsx'
import {
  changedLimitFields,
  EMPTY_LIMIT_VALUES,
  RATE_LIMIT_NAMES,
  type LimitFormValues,
} from '../../components/limit-form-values.ts'
import {
  changedContentLogFields,
  EMPTY_CONTENT_LOG_VALUES,
  type ContentLogFormValues,
} from '../../components/content-log-form-values.ts'
import { useAction } from '../../components/use-action.ts'
import { useTexts } from '../../locales/use-texts.tsx'
import { FormChange, FormDialog } from '../../components/form-dialog.tsx'
import { FormActions } from '../../components/form-actions.tsx'
import { useUserChanges } from './use-user-changes.ts'

const MIN_LENGTH = 8

interface TypedUser extends LimitFormValues, ContentLogFormValues {
  readonly username: string
  readonly password: string
  readonly role: string
  readonly group: string
  readonly quota: string
  readonly unlimited_quota: boolean
}

/** Creates a user who can sign in. */
export function AddUserDialog({
  opened,
  onClose,
}: {
  readonly opened: boolean
  readonly onClose: () => void
}) {
  const { users } = useTexts()
  return (
    <FormDialog opened={opened} onClose={onClose} title={users.add}>
      <AddUserForm onClose={onClose} />
    </FormDialog>
  )
}

function useUserForm() {
  const { common, account } = useTexts()
  const { display } = useSignedInAccount()
  const rules = { ...useLimitRules(), ...useContentRules() }
  return useForm<TypedUser>({
    mode: 'controlled',
    validateInputOnBlur: ['quota', 'budget', 'content_log_sample', ...RATE_LIMIT_NAMES],
    initialValues: {
      ...EMPTY_LIMIT_VALUES,
      ...EMPTY_CONTENT_LOG_VALUES,
      username: '',
      password: '',
      role: String(Role.user),
      unlimited_quota: false,
      group: 'default',
      quota: '0',
    },
    validate: {
      ...rules,
      username: (text) => (text.trim() === '' ? common.required : null),
      password: (text) => (characterCount(text) < MIN_LENGTH ? account.shortPassword : null),
      quota: (text) => (parseMoney(text, display) === undefined ? common.notAnAmount : null),
    },
  })
}

function AddUserForm({ onClose }: { readonly onClose: () => void }) {
  const { users, common, content } = useTexts()
  const { profile, display } = useSignedInAccount()
  const { reload } = useUserChanges()
  const { data: groups = ['default'] } = useQuery(groupsQuery(profile.id))
  const form = useUserForm()
  const creating = useAction(async (given: TypedUser) => {
    const { username, password, role, group, quota, unlimited_quota, ...typed } = given
    const fields = {
      ...changedLimitFields(typed, EMPTY_LIMIT_VALUES, display),
      ...changedContentLogFields(typed, EMPTY_CONTENT_LOG_VALUES),
      username: username.trim(),
      password,
      role: Number(role),
      group,
      unlimited_quota,
    }
    try {
      await createUser({ ...fields, quota: parseMoney(quota, display) ?? 0 })
    } catch (error) {
      const field = error instanceof ApiError ? error.field : undefined
      if (field === undefined || !(field in form.getValues())) throw error
      form.setFieldError(field, (error as ApiError).message)
      return
    }
    await reload()
    showNotice(users.created(fields.username))
    onClose()
  })
  const roles = ROLES.filter((role) => role < profile.role)
  return (
    <form noValidate onSubmit={form.onSubmit((typed) => void creating.run(typed))}>
      <FormChange isChanged={form.isDirty()} />
      <Stack gap="md">
        <TextInput
          label={users.username}
          autoComplete="off"
          data-autofocus
          {...form.getInputProps('username')}
        />
        <NewPasswordInput
          label={users.password}
          description={users.passwordHint}
          onGenerate={(password) => form.setFieldValue('password', password)}
          {...form.getInputProps('password')}
        />
        <Select
          label={users.role}
          allowDeselect={false}
          data={roles.map((role) => ({ value: String(role), label: users.roles[role] }))}
          {...form.getInputProps('role')}
        />
        <Select
          label={users.group}
          allowDeselect={false}
          data={[...groups]}
          {...form.getInputProps('group')}
        />
        <Switch
          label={users.unlimited}
          description={users.unlimitedHint}
          {...form.getInputProps('unlimited_quota', { type: 'checkbox' })}
        />
        <TextInput
          label={users.quota}
          description={users.quotaHint}
          inputMode="decimal"
          disabled={form.values.unlimited_quota}
          rightSection={display.kind === 'TOKENS' ? common.units : moneyUnit(display)}
          rightSectionWidth={60}
          {...form.getInputProps('quota')}
        />
        <LimitInputs form={form} />
        <ContentInputs form={form} hint={content.userHint} />
        <RefusalMessage error={creating.error} />
      </Stack>
      <FormActions label={users.create} isRunning={creating.isRunning} onCancel={onClose} />
    </form>
  )
}
