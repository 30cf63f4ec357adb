import { Box, Button, Group, Modal } from '@mantine/core'
import { useState } from 'react'
import type { NewKey } from '../../api/keys.ts'
import { NewKeyField } from '../../components/new-key-field.tsx'
import { useTexts } from '../../locales/use-texts.tsx'
import { SnippetTabs } from '../../components/snippet-tabs.tsx'

/** A key that was just created; it is masked until the user reveals it. */
export function CreatedKeyDialog({
  made,
  onDone,
}: {
  readonly made: (NewKey & { readonly models: readonly string[] }) | undefined
  readonly onDone: () => void
}) {
  const { keys, common } = useTexts()
  return (
    <Modal
      opened={made !== undefined}
      onClose={onDone}
      size="lg"
      title={keys.created}
      closeOnClickOutside={false}
      closeButtonProps={{ 'aria-label': common.close }}
    >
      {made && <CreatedKey secret={made.key} models={made.models} onDone={onDone} />}
    </Modal>
  )
}

function CreatedKey({
  secret,
  models,
  onDone,
}: {
  readonly secret: string
  readonly models: readonly string[]
  readonly onDone: () => void
}) {
  const { keys } = useTexts()
  const [isInserted, setIsInserted] = useState(false)
  return (
    <>
      <NewKeyField secret={secret} hint={keys.createdHint} />
      <Box mt="xl">
        <SnippetTabs
          limitedTo={models}
          insertedKey={isInserted ? secret : undefined}
          onInsert={() => setIsInserted(true)}
        />
      </Box>
      <Group justify="flex-end" mt="lg">
        <Button onClick={onDone}>{keys.done}</Button>
      </Group>
    </>
  )
}
