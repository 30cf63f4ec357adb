import { Modal, type ModalProps } from '@mantine/core'
import { useEffect, useState } from 'react'
import { useTexts } from '../locales/use-texts.tsx'
import { useConfirmLeave } from './confirm-leave.tsx'

/** A dialog with fields: a click beside it leaves it open, and it asks before what was typed or chosen is lost. */
export function FormDialog({
  opened,
  isDone = false,
  closeOnEscape = true,
  onClose,
  children,
  ...modal
}: ModalProps & {
  /** Whether its form is sent, and the dialog shows what came of it. */
  readonly isDone?: boolean
}) {
  const { common } = useTexts()
  const [isTyped, setIsTyped] = useState(false)
  useEffect(() => setIsTyped(false), [opened])
  const leaving = useConfirmLeave(opened && isTyped && !isDone, onClose)
  return (
    <Modal
      {...modal}
      opened={opened}
      onClose={leaving.close}
      closeOnClickOutside={false}
      closeOnEscape={closeOnEscape && !leaving.isAsking}
      closeButtonProps={{ 'aria-label': common.close }}
      onChange={() => setIsTyped(true)}
      onClick={({ target }) => {
        // A choice in a list is no change of an input.
        if (target instanceof Element && target.closest('[role=option]')) setIsTyped(true)
      }}
    >
      {children}
      {leaving.question}
    </Modal>
  )
}
