import { Button, Select, Stack, Switch, TextInput } from '@mantine/core'
import { useForm } from '@mantine/form'
import { ROLES } from '../../../src/domain/role.ts'
import { changeUser, type ManagedUser } from '../../api/users.ts'
import {
  ContentInputs,
  useContentLabels,
  useContentRules,
  useContentWords,
} from '../../components/content-inputs.tsx'
import { LimitInputs, useLimitLabels, useLimitRules, useLimitWords } from '../../components/limit-inputs.tsx'
import type { MoneyDisplay } from '../../components/money.ts'
import { changedLimitFields, RATE_LIMIT_NAMES, limitFormValues } from '../../components/limit-form-values.ts'
import { changedContentLogFields, contentLogFormValues } from '../../components/content-log-form-values.ts'
import { ConfirmLeave } from '../../components/confirm-leave.tsx'
import { RefusalMessage } from '../../components/refusal-message.tsx'
import { useFormatters, useSignedInAccount } from '../../components/session.tsx'
import { useMergedEdit } from '../../components/use-merged-edit.tsx'
import { Figures } from '../../components/figures.tsx'
import { useGroups } from '../../components/use-groups.ts'
import { useTexts } from '../../locales/use-texts.tsx'
import { UserBudgets } from './user-budgets.tsx'
import { useUserChanges } from './use-user-changes.ts'

/** The fields of a user that an administrator may change. */
export function UserProfile({ user }: { readonly user: ManagedUser }) {
  const { users, common, limits, content } = useTexts()
  const { left, left_by } = user
  const { profile, display } = useSignedInAccount()
  const rules = { ...useLimitRules(), ...useContentRules() }
  const labels = { ...useLimitLabels(), ...useContentLabels() }
  const words = { ...useLimitWords(), ...useContentWords() }
  const { money, exact, count } = useFormatters()
  const { reload } = useUserChanges()
  const form = useForm({
    mode: 'controlled',
    initialValues: profileFormValues(user, display),
    validateInputOnBlur: ['budget', 'content_log_sample', ...RATE_LIMIT_NAMES],
    validate: {
      ...rules,
      display_name: (text: string) => (text.trim() === '' ? common.required : null),
    },
  })
  const groups = useGroups([form.values.group])
  const edit = useMergedEdit<ReturnType<typeof profileFormValues>, ManagedUser>({
    form,
    object: user,
    typedOf: (present) => profileFormValues(present, display),
    labels: {
      display_name: users.displayName,
      role: users.role,
      group: users.group,
      remark: users.remark,
      unlimited_quota: users.unlimited,
      ...labels,
    },
    words: { ...words, role: users.roles },
    save({ role, display_name, group, remark, unlimited_quota, ...typed }, version, saved) {
      const fields = {
        display_name,
        group,
        remark,
        ...(unlimited_quota !== saved.unlimited_quota && { unlimited_quota }),
        ...changedLimitFields(typed, limitFormValues(saved, display), display),
        ...changedContentLogFields(typed, contentLogFormValues(saved)),
      }
      const roleChange = Number(role) === user.role ? {} : { role: Number(role) }
      return changeUser(user.id, { ...fields, ...roleChange, version })
    },
    reload,
    saved: () => common.saved,
  })
  const isOther = user.role < profile.role
  const roles = ROLES.filter((role) => role < profile.role || role === user.role)
  return (
    <>
      <Figures
        figures={[
          {
            label: users.left,
            value: left === null ? common.unlimited : money(left),
            title: left === null ? undefined : exact(left),
            note: left_by ? limits.by[left_by](user.group) : undefined,
          },
          {
            label: users.quota,
            value: user.unlimited_quota ? common.unlimited : money(user.quota),
            title: exact(user.quota),
          },
          { label: users.spend, value: money(user.used_quota), title: exact(user.used_quota) },
          { label: users.requests, value: count(user.request_count) },
        ]}
      />
      <UserBudgets user={user} />
      <form noValidate onSubmit={form.onSubmit(edit.save)}>
        <Stack gap="md" maw={440}>
          <TextInput label={users.displayName} {...form.getInputProps('display_name')} />
          <Select
            label={users.role}
            allowDeselect={false}
            disabled={!isOther}
            data={roles.map((role) => ({ value: String(role), label: users.roles[role] }))}
            {...form.getInputProps('role')}
          />
          <Select
            label={users.group}
            allowDeselect={false}
            disabled={!isOther}
            data={groups.data}
            {...form.getInputProps('group')}
            onFocus={groups.onFocus}
          />
          <TextInput label={users.remark} {...form.getInputProps('remark')} />
          <Switch
            label={users.unlimited}
            description={users.unlimitedHint}
            disabled={!isOther}
            {...form.getInputProps('unlimited_quota', { type: 'checkbox' })}
          />
          <LimitInputs form={form} isDisabled={!isOther} />
          <ContentInputs form={form} hint={content.userHint} isDisabled={!isOther} />
          <RefusalMessage error={edit.error} />
          <Button
            type="submit"
            style={{ alignSelf: 'start' }}
            loading={edit.isSaving}
            disabled={!form.isDirty()}
          >
            {common.saveChanges}
          </Button>
        </Stack>
      </form>
      <ConfirmLeave isChanged={form.isDirty()} />
      {edit.conflict}
    </>
  )
}

function profileFormValues(user: ManagedUser, display: MoneyDisplay) {
  const { display_name, role, group, remark, unlimited_quota } = user
  return {
    ...limitFormValues(user, display),
    ...contentLogFormValues(user),
    display_name,
    role: String(role),
    group,
    remark,
    unlimited_quota,
  }
}
