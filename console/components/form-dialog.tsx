import { Modal, type ModalProps } from '@mantine/core'
import { createContext, useContext, useEffect, useState } from 'react'
import { useTexts } from '../locales/use-texts.tsx'
import { useConfirmLeave } from './confirm-leave.tsx'

const ReportChange = createContext<(isChanged: boolean) => void>(() => undefined)

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
  const [isReported, setIsReported] = useState(false)
  useEffect(() => setIsTyped(false), [opened])
  const leaving = useConfirmLeave(opened && (isTyped || isReported) && !isDone, onClose)
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
      <ReportChange value={setIsReported}>{children}</ReportChange>
      {leaving.question}
    </Modal>
  )
}

/** Reports to the dialog around a form that the form is changed, also by its buttons, such as those that remove rows. */
export function FormChange({ isChanged }: { readonly isChanged: boolean }) {
  const report = useContext(ReportChange)
  useEffect(() => {
    report(isChanged)
    return () => report(false)
  }, [report, isChanged])
  return null
}
