import { Box, Button, Group, Select, Stack, TextInput } from '@mantine/core'
import { useForm } from '@mantine/form'
import { useQuery, useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import {
  groupsQuery,
  type Invitation,
  invitationsQuery,
  invite,
  withdrawInvitation,
} from '../../api/users.ts'
import { CopyButton } from '../../components/copy-button.tsx'
import { type Column, DataTable } from '../../components/data-table.tsx'
import { FormDialog } from '../../components/form-dialog.tsx'
import { FormActions } from '../../components/form-actions.tsx'
import { changedLimitFields, EMPTY_LIMIT_VALUES } from '../../components/limit-form-values.ts'
import { type BudgetFormValues, BudgetInputs, useLimitRules } from '../../components/limit-inputs.tsx'
import { moneyUnit, parseMoney } from '../../components/money.ts'
import { showFailure } from '../../components/notify.tsx'
import { RefusalMessage } from '../../components/refusal-message.tsx'
import { useFormatters, useSignedInAccount } from '../../components/session.tsx'
import { TimeText } from '../../components/time-text.tsx'
import { useAction } from '../../components/use-action.ts'
import { useTexts } from '../../locales/use-texts.tsx'

/** Makes invitation links, and lists those that are open. */
export function InviteDialog({
  opened,
  onClose,
}: {
  readonly opened: boolean
  readonly onClose: () => void
}) {
  const { users } = useTexts()
  const [link, setLink] = useState<string>()
  const close = (): void => {
    setLink(undefined)
    onClose()
  }
  return (
    <FormDialog opened={opened} onClose={close} title={users.invite} isDone={link !== undefined} size="lg">
      {link === undefined ? (
        <InviteForm onMade={setLink} onClose={close} />
      ) : (
        <MadeLink link={link} onClose={close} />
      )}
      <OpenInvitations />
    </FormDialog>
  )
}

interface Typed extends BudgetFormValues {
  readonly group: string
  readonly quota: string
}

function InviteForm({
  onMade,
  onClose,
}: {
  readonly onMade: (link: string) => void
  readonly onClose: () => void
}) {
  const { users, common } = useTexts()
  const { profile, display } = useSignedInAccount()
  const client = useQueryClient()
  const { data: groups = ['default'] } = useQuery(groupsQuery(profile.id))
  const { budget } = useLimitRules()
  const form = useForm<Typed>({
    mode: 'controlled',
    initialValues: { group: 'default', quota: '0', budget: '', budget_period: '' },
    validateInputOnBlur: ['quota', 'budget'],
    validate: {
      quota: (text) => (parseMoney(text, display) === undefined ? common.notAnAmount : null),
      budget: (text) => budget(text),
    },
  })
  const making = useAction(async ({ group, quota, ...typed }: Typed) => {
    const limits = changedLimitFields({ ...EMPTY_LIMIT_VALUES, ...typed }, EMPTY_LIMIT_VALUES, display)
    const { link } = await invite({ group, quota: parseMoney(quota, display) ?? 0, ...limits })
    await client.invalidateQueries(invitationsQuery(profile.id))
    onMade(link.startsWith('/') ? `${window.location.origin}${link}` : link)
  })
  return (
    <form noValidate onSubmit={form.onSubmit((typed) => void making.run(typed))}>
      <Stack gap="md">
        <p>{users.inviteHint}</p>
        <Select
          label={users.group}
          allowDeselect={false}
          data={[...groups]}
          {...form.getInputProps('group')}
        />
        <TextInput
          label={users.quota}
          description={users.quotaHint}
          inputMode="decimal"
          rightSection={display.kind === 'TOKENS' ? common.units : moneyUnit(display)}
          rightSectionWidth={60}
          {...form.getInputProps('quota')}
        />
        <BudgetInputs form={form} />
        <RefusalMessage error={making.error} />
      </Stack>
      <FormActions label={users.makeLink} isRunning={making.isRunning} onCancel={onClose} />
    </form>
  )
}

function MadeLink({ link, onClose }: { readonly link: string; readonly onClose: () => void }) {
  const { users, keys } = useTexts()
  return (
    <>
      <TextInput
        label={users.link}
        description={users.linkHint}
        readOnly
        spellCheck={false}
        autoComplete="off"
        styles={{ input: { fontFamily: 'var(--mantine-font-family-monospace)' } }}
        value={link}
      />
      <Group justify="space-between" mt="lg">
        <CopyButton label={users.copyLink} text={link} isPrimary hasFocus />
        <Button variant="default" onClick={onClose}>
          {keys.done}
        </Button>
      </Group>
    </>
  )
}

function OpenInvitations() {
  const texts = useTexts()
  const { users, common } = texts
  const { profile } = useSignedInAccount()
  const { money } = useFormatters()
  const client = useQueryClient()
  const query = invitationsQuery(profile.id)
  const { data: open = [] } = useQuery(query)
  if (open.length === 0) return null
  const withdraw = async (id: number): Promise<void> => {
    await withdrawInvitation(id).catch((error: unknown) => showFailure(error, texts))
    await client.invalidateQueries(query)
  }
  const columns: readonly Column<Invitation>[] = [
    { key: 'group', label: users.group, phone: 'title', cell: ({ group }) => group },
    { key: 'quota', label: users.quota, isNumber: true, cell: ({ quota }) => money(quota) },
    { key: 'by', label: users.invitedBy, cell: ({ inviter }) => inviter || '–' },
    { key: 'until', label: users.validUntil, cell: ({ expires_at }) => <TimeText at={expires_at} /> },
    {
      key: 'actions',
      label: common.actions,
      isLabelHidden: true,
      phone: 'actions',
      cell: ({ id }) => (
        <Button variant="default" size="xs" onClick={() => void withdraw(id)}>
          {users.withdraw}
        </Button>
      ),
    },
  ]
  return (
    <Box component="section" mt="xl" aria-label={users.openInvitations}>
      <h2>{users.openInvitations}</h2>
      <DataTable label={users.openInvitations} columns={columns} rows={open} keyOf={({ id }) => id} />
    </Box>
  )
}
