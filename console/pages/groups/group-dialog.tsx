import { Button, Checkbox, Group, Stack, TextInput } from '@mantine/core'
import { useForm } from '@mantine/form'
import { useQueryClient } from '@tanstack/react-query'
import { useEffect, useState } from 'react'
import { Role } from '../../../src/domain/role.ts'
import { changeGroup, createGroup, deleteGroup, type ManagedGroup } from '../../api/groups.ts'
import { guardsQuery } from '../../api/guards.ts'
import { ConfirmDialog } from '../../components/confirm-dialog.tsx'
import { FormChange, FormDialog } from '../../components/form-dialog.tsx'
import { FormActions } from '../../components/form-actions.tsx'
import { NamesInput } from '../../components/names-input.tsx'
import { changedLimitFields, EMPTY_LIMIT_VALUES } from '../../components/limit-form-values.ts'
import {
  type BudgetFormValues,
  BudgetInputs,
  useLimitLabels,
  useLimitRules,
  useLimitWords,
} from '../../components/limit-inputs.tsx'
import { exactAmount, type MoneyDisplay } from '../../components/money.ts'
import { showNotice } from '../../components/notify.tsx'
import { RefusalMessage } from '../../components/refusal-message.tsx'
import { useSignedInAccount } from '../../components/session.tsx'
import { useMergedEdit } from '../../components/use-merged-edit.tsx'
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
  const { groups } = useTexts()
  const [isAsking, setAsking] = useState(false)
  return (
    <FormDialog
      opened={opened}
      onClose={onClose}
      title={group?.group ?? groups.add}
      size="lg"
      closeOnEscape={!isAsking}
    >
      <GroupForm group={group} onClose={onClose} onAsking={setAsking} />
      {group && <GroupMembers group={group} />}
    </FormDialog>
  )
}

interface Typed extends BudgetFormValues {
  readonly name: string
  readonly ratio: string
  readonly open: boolean
  readonly guards: string[]
}

/** What the form changes. */
type Terms = Pick<
  ManagedGroup,
  'group' | 'ratio' | 'open' | 'guards' | 'budget' | 'budget_period' | 'version'
>

const NEW_GROUP: Terms = {
  group: '',
  ratio: '1',
  open: false,
  guards: [],
  budget: 0,
  budget_period: '',
  version: '',
}

function GroupForm({
  group,
  onClose,
  onAsking,
}: {
  readonly group: ManagedGroup | undefined
  readonly onClose: () => void
  /** Called when a question opens, and when it closes. */
  readonly onAsking: (isAsking: boolean) => void
}) {
  const { groups, guards, common, settings } = useTexts()
  const { profile, display } = useSignedInAccount()
  const client = useQueryClient()
  const { budget } = useLimitRules()
  const { budget: budgetLabel, budget_period: periodLabel } = useLimitLabels()
  const { budget_period: periods } = useLimitWords()
  const isLocked = group?.managed === true || profile.role < Role.root
  const form = useForm<Typed>({
    mode: 'controlled',
    initialValues: typedOf(group ?? NEW_GROUP, display),
    validateInputOnBlur: ['ratio', 'budget'],
    validate: {
      name: (text) => (text.trim() === '' ? common.required : null),
      ratio: (text) => (/^\d+(?:\.\d+)?$/.test(text.trim()) ? null : settings.notANumber),
      budget: (text) => budget(text),
    },
  })
  const reload = async (): Promise<void> => {
    for (const name of ['managed-groups', 'groups', 'group-budgets', 'options'])
      await client.invalidateQueries({ queryKey: [profile.id, name] })
  }
  const edit = useMergedEdit<Typed, Terms>({
    form,
    object: group ?? NEW_GROUP,
    typedOf: (present) => typedOf(present, display),
    labels: {
      name: groups.name,
      budget: budgetLabel,
      budget_period: periodLabel,
      ratio: groups.ratio,
      open: groups.openLabel,
      guards: guards.title,
    },
    words: { budget_period: periods },
    async save(typed, version, saved) {
      const fields = changedFields(typed, typedOf(saved, display), display)
      const now = group
        ? await changeGroup(group.group, fields, version)
        : await createGroup(typed.name.trim(), fields)
      onClose()
      return now
    },
    reload,
    saved: ({ name }) => groups.saved(name.trim()),
  })
  const [isDeleting, setIsDeleting] = useState(false)
  const isAsking = edit.isAsking || isDeleting
  useEffect(() => onAsking(isAsking), [onAsking, isAsking])
  return (
    <form noValidate onSubmit={form.onSubmit(edit.save)}>
      <FormChange isChanged={form.isDirty()} />
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
        <RefusalMessage error={edit.error} />
      </Stack>
      {!isLocked && (
        <FormActions
          label={group ? common.saveChanges : groups.create}
          isRunning={edit.isSaving}
          onCancel={onClose}
        />
      )}
      {!isLocked && group && group.group !== DEFAULT && (
        <Group mt="sm">
          <Button variant="default" onClick={() => setIsDeleting(true)}>
            {groups.remove}
          </Button>
          <ConfirmDialog
            opened={isDeleting}
            title={groups.remove}
            text={groups.deleteText(group.group)}
            label={groups.remove}
            onConfirm={async () => {
              await deleteGroup(group.group)
              await reload()
              showNotice(groups.deleted(group.group))
              onClose()
            }}
            onClose={() => setIsDeleting(false)}
          />
        </Group>
      )}
      {edit.conflict}
    </form>
  )
}

function typedOf(group: Terms, display: MoneyDisplay): Typed {
  const { ratio, open, guards, budget, budget_period } = group
  return {
    name: group.group,
    ratio,
    open,
    guards,
    budget: budget > 0 ? exactAmount(budget, display) : '',
    budget_period: budget_period as Typed['budget_period'],
  }
}

/** The fields that differ from those of the group on which the change is based. */
function changedFields({ ratio, open, guards, ...typed }: Typed, before: Typed, display: MoneyDisplay) {
  const { budget, budget_period } = before
  return {
    ...(ratio.trim() !== before.ratio && { ratio: ratio.trim() }),
    ...(open !== before.open && { open }),
    ...(guards.join() !== before.guards.join() && { guards }),
    ...changedLimitFields(
      { ...EMPTY_LIMIT_VALUES, ...typed },
      { ...EMPTY_LIMIT_VALUES, budget, budget_period },
      display,
    ),
  }
}
