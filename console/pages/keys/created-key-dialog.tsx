import { Button, Group, Modal, TextInput } from '@mantine/core'
import { useState } from 'react'
import type { NewKey } from '../../api/keys.ts'
import { CopyButton } from '../../components/copy-button.tsx'
import { useTexts } from '../../locales/use-texts.tsx'
import { maskedKey } from './masked-key.ts'
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
  const [isShown, setIsShown] = useState(false)
  const [isInserted, setIsInserted] = useState(false)
  return (
    <>
      <TextInput
        label={keys.apiKey}
        description={keys.createdHint}
        readOnly
        spellCheck={false}
        autoComplete="off"
        ff="monospace"
        value={isShown ? secret : maskedKey(secret)}
      />
      <Group gap="sm" mt="sm" mb="xl">
        <Button variant="default" disabled={isShown} onClick={() => setIsShown(true)}>
          {keys.show}
        </Button>
        <CopyButton label={keys.copyKey} text={secret} isPrimary hasFocus />
      </Group>
      <SnippetTabs
        limitedTo={models}
        insertedKey={isInserted ? secret : undefined}
        onInsert={() => setIsInserted(true)}
      />
      <Group justify="flex-end" mt="lg">
        <Button onClick={onDone}>{keys.done}</Button>
      </Group>
    </>
  )
}
