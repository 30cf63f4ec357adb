import { Stack, TagsInput, TextInput } from '@mantine/core'
import { useForm } from '@mantine/form'
import { useQueryClient } from '@tanstack/react-query'
import { type McpToolset, saveMcpToolset } from '../../api/tools.ts'
import { FormChange, FormDialog } from '../../components/form-dialog.tsx'
import { FormActions } from '../../components/form-actions.tsx'
import { RefusalMessage } from '../../components/refusal-message.tsx'
import { useSignedInAccount } from '../../components/session.tsx'
import { useMergedEdit } from '../../components/use-merged-edit.tsx'
import { useTexts } from '../../locales/use-texts.tsx'

/** What the form changes; a new toolset has none of it. */
type Present = Partial<McpToolset> & { readonly version: string }

/** A toolset: its patterns, and whose calls have it. */
export function ToolsetDialog({
  toolset,
  onClose,
}: {
  /** Undefined for a new toolset. */
  readonly toolset: McpToolset | undefined
  readonly onClose: () => void
}) {
  const { tools: t, common } = useTexts()
  const { profile } = useSignedInAccount()
  const client = useQueryClient()
  const isLocked = toolset?.managed === true
  const object: Present = toolset ?? { version: '' }
  const form = useForm({
    mode: 'controlled',
    initialValues: typedOf(object),
    validate: {
      name: (text) => (text.trim() === '' ? common.required : null),
      tools: (patterns) => (patterns.length === 0 ? common.required : null),
    },
  })
  const edit = useMergedEdit({
    form,
    object,
    typedOf,
    labels: { name: t.toolset, tools: t.patterns, groups: t.groups, users: t.users },
    async save({ name, tools, groups, users }, version) {
      const fields = {
        name: name.trim(),
        tools,
        ...(groups.length > 0 && { groups }),
        ...(users.length > 0 && { users }),
        ...(toolset && { version }),
      }
      const now = await saveMcpToolset(fields, toolset === undefined)
      onClose()
      return now
    },
    reload: () => client.invalidateQueries({ queryKey: [profile.id, 'mcp'] }),
    saved: ({ name }) => t.saved(name.trim()),
  })
  return (
    <FormDialog
      opened
      closeOnEscape={!edit.isAsking}
      onClose={onClose}
      title={toolset?.name ?? t.addToolset}
      size="lg"
    >
      <form noValidate onSubmit={form.onSubmit(edit.save)}>
        <FormChange isChanged={form.isDirty()} />
        <Stack gap="md">
          {isLocked && <p>{t.fromFile}</p>}
          {!toolset && <TextInput label={t.toolset} data-autofocus {...form.getInputProps('name')} />}
          <TagsInput
            label={t.patterns}
            description={t.patternsHint}
            disabled={isLocked}
            {...form.getInputProps('tools')}
          />
          <TagsInput
            label={t.groups}
            description={t.scopeHint}
            disabled={isLocked}
            {...form.getInputProps('groups')}
          />
          <TagsInput label={t.users} disabled={isLocked} {...form.getInputProps('users')} />
          <RefusalMessage error={edit.error} />
        </Stack>
        {!isLocked && <FormActions label={common.save} isRunning={edit.isSaving} onCancel={onClose} />}
        {edit.conflict}
      </form>
    </FormDialog>
  )
}

function typedOf({ name = '', tools, groups, users }: Present) {
  return { name, tools: [...(tools ?? [])], groups: [...(groups ?? [])], users: [...(users ?? [])] }
}
