import { Button, Checkbox, Group, Modal, Stack, TextInput } from '@mantine/core'
import { useForm } from '@mantine/form'
import { useQueryClient } from '@tanstack/react-query'
import { Role } from '../../../src/domain/role.ts'
import { deleteGroup, type ManagedGroup, saveGroup } from '../../api/groups.ts'
import { guardsQuery } from '../../api/guards.ts'
import { FormActions } from '../../components/form-actions.tsx'
import { NamesInput } from '../../components/names-input.tsx'
import { changedLimitFields, EMPTY_LIMIT_VALUES } from '../../components/limit-form-values.ts'
import { type BudgetFormValues, BudgetInputs, useLimitRules } from '../../components/limit-inputs.tsx'
import { exactAmount, type MoneyDisplay } from '../../components/money.ts'
import { showNotice } from '../../components/notify.tsx'
import { RefusalMessage } from '../../components/refusal-message.tsx'
import { useSignedInAccount } from '../../components/session.tsx'
import { useAction } from '../../components/use-action.ts'
import { useTexts } from '../../locales/use-texts.tsx'
import { GroupMembers } from './group-members.tsx'

const DEFAULT = 'default'

/** One group: its terms, which root can change unless a file declares them, its members and its models. */
export function GroupDialog({
  group,
  opened,
  onClose,
}: {
  /** Undefined for a new group. */
  readonly group: ManagedGroup | undefined
  readonly opened: boolean
  readonly onClose: () => void
}) {
  const { groups, common } = useTexts()
  return (
    <Modal
      opened={opened}
      onClose={onClose}
      title={group?.group ?? groups.add}
      size="lg"
      closeButtonProps={{ 'aria-label': common.close }}
    >
      <GroupForm group={group} onClose={onClose} />
      {group && <GroupMembers group={group} />}
    </Modal>
  )
}

interface Typed extends BudgetFormValues {
  readonly name: string
  readonly ratio: string
  readonly open: boolean
  readonly guards: string[]
}

function GroupForm({
  group,
  onClose,
}: {
  readonly group: ManagedGroup | undefined
  readonly onClose: () => void
}) {
  const { groups, guards, common, settings } = useTexts()
  const { profile, display } = useSignedInAccount()
  const client = useQueryClient()
  const { budget } = useLimitRules()
  const isLocked = group?.managed === true || profile.role < Role.root
  const before = typedOf(group, display)
  const form = useForm<Typed>({
    mode: 'controlled',
    initialValues: before,
    validateInputOnBlur: ['ratio', 'budget'],
    validate: {
      name: (text) => (text.trim() === '' ? common.required : null),
      ratio: (text) => (/^\d+(?:\.\d+)?$/.test(text.trim()) ? null : settings.notANumber),
      budget: (text) => budget(text),
    },
  })
  const finish = async (notice: string): Promise<void> => {
    for (const name of ['managed-groups', 'groups', 'group-budgets', 'options'])
      await client.invalidateQueries({ queryKey: [profile.id, name] })
    showNotice(notice)
    onClose()
  }
  const saving = useAction(async ({ name, ratio, open, guards, ...typed }: Typed) => {
    const limits = changedLimitFields(
      { ...EMPTY_LIMIT_VALUES, ...typed },
      { ...EMPTY_LIMIT_VALUES, budget: before.budget, budget_period: before.budget_period },
      display,
    )
    await saveGroup(name.trim(), { ratio: ratio.trim(), open, guards, ...limits }, group === undefined)
    await finish(groups.saved(name.trim()))
  })
  const deleting = useAction(async () => {
    if (!group) return
    await deleteGroup(group.group)
    await finish(groups.deleted(group.group))
  })
  return (
    <form noValidate onSubmit={form.onSubmit((typed) => void saving.run(typed))}>
      <Stack gap="md">
        {group?.managed && <p>{groups.fromFile}</p>}
        {!group && <TextInput label={groups.name} data-autofocus {...form.getInputProps('name')} />}
        <TextInput
          label={groups.ratio}
          description={groups.ratioHint}
          inputMode="decimal"
          leftSection="×"
          disabled={isLocked}
          {...form.getInputProps('ratio')}
        />
        <Checkbox
          label={groups.openLabel}
          disabled={isLocked}
          {...form.getInputProps('open', { type: 'checkbox' })}
        />
        <BudgetInputs form={form} isDisabled={isLocked} />
        <NamesInput
          label={guards.title}
          description={guards.namesHint}
          query={guardsQuery(profile.id)}
          disabled={isLocked}
          {...form.getInputProps('guards')}
        />
        <RefusalMessage error={saving.error ?? deleting.error} />
      </Stack>
      {!isLocked && (
        <FormActions
          label={group ? common.saveChanges : groups.create}
          isRunning={saving.isRunning}
          onCancel={onClose}
        />
      )}
      {!isLocked && group && group.group !== DEFAULT && (
        <Group mt="sm">
          <Button variant="default" loading={deleting.isRunning} onClick={() => void deleting.run()}>
            {groups.remove}
          </Button>
        </Group>
      )}
    </form>
  )
}

function typedOf(group: ManagedGroup | undefined, display: MoneyDisplay): Typed {
  return {
    name: group?.group ?? '',
    ratio: group?.ratio ?? '1',
    open: group?.open ?? false,
    guards: group?.guards ?? [],
    budget: group && group.budget > 0 ? exactAmount(group.budget, display) : '',
    budget_period: (group?.budget_period ?? '') as Typed['budget_period'],
  }
}
